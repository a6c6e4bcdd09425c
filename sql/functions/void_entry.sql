-- void_entry(user, kind, source, leg, reason, key, at): says that a charge, payment or proration was never owed, and gives back the
-- whole of it, once per (user, key). Refused when some of it was given back already: the rest is a refund. The charge stays
-- captured, so the period is never charged again. Kind, source, leg, `at` and errors are those of refund.
-- Returns what was given back.
CREATE OR REPLACE FUNCTION void_entry(
  p_user_id bigint, p_kind text, p_source bigint, p_leg bigint, p_reason text, p_idempotency_key text,
  p_at timestamptz DEFAULT now())
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  RETURN give_back(p_user_id, 'void', p_kind, p_source, p_leg, NULL, p_reason, p_idempotency_key, p_at);
END $$;
COMMENT ON FUNCTION void_entry IS
  'Gives back the whole of what was never owed. Errors: LL001 key used otherwise, LL002 bad argument, LL003 some was given back already.';
REVOKE ALL ON FUNCTION void_entry FROM PUBLIC;
GRANT EXECUTE ON FUNCTION void_entry TO ledgerlock_support;

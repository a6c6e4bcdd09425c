-- order_by_key(user, key): the number and the state of the order that this user placed under this key, for a caller whose answer
-- was lost with the lines. No row: the user has no such order.
CREATE OR REPLACE FUNCTION order_by_key(p_user_id bigint, p_idempotency_key text)
RETURNS TABLE (order_id bigint, state text, reason text, skus text[], total_minor bigint, currency text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT o.order_id, o.state, o.reason, o.skus, o.total_minor, o.currency
    FROM orders AS o WHERE o.user_id = p_user_id AND o.idempotency_key = p_idempotency_key
$$;
COMMENT ON FUNCTION order_by_key IS 'The number of the order under a key of a user, and what order_status tells of it.';
REVOKE ALL ON FUNCTION order_by_key FROM PUBLIC;
GRANT EXECUTE ON FUNCTION order_by_key TO ledgerlock_shop, ledgerlock_support;

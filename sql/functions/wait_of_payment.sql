-- wait_of_payment(kind, source, leg): what the attempt that is not decided waits for, in words. null: there is none.
CREATE OR REPLACE FUNCTION wait_of_payment(p_kind text, p_source bigint, p_leg bigint)
RETURNS text LANGUAGE sql STABLE SET search_path FROM CURRENT SET timezone = 'UTC' AS $$
  SELECT format('paying: attempt %s %s is %s%s%s', attempt_no, CASE kind WHEN 'charge' THEN 'of period ' || leg ELSE 'of order ' || source END, state,
                coalesce(' since ' || to_char(first_sent_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), ''),
                CASE state WHEN 'planned' THEN '' WHEN 'sent' THEN format(', call %s is under way', calls)
                  WHEN 'parked' THEN format(' (%s); ledgerlock parked release payment:%s', reason, payment_id)
                  ELSE format(' (%s), asked again at %s', reason, to_char(due_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) END)
    FROM payments
   WHERE (source, kind, leg) = (p_source, p_kind, p_leg) AND state NOT IN ('declined', 'void')
$$;
COMMENT ON FUNCTION wait_of_payment IS 'What an attempt that is not decided waits for. Errors: none of its own.';
REVOKE ALL ON FUNCTION wait_of_payment FROM PUBLIC;
GRANT EXECUTE ON FUNCTION wait_of_payment TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;

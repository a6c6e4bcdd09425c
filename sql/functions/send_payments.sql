-- send_payments(token, worker, now, ids, limit, form): the attempts of a batch whose users the transaction has claimed become sent, before
-- anybody is called: due are those that are planned or unknown, and those that were sent so long ago that no answer comes any more.
-- From so many milliseconds on (limit) this call counts as one without an answer. When they are due is told by the clock of the
-- database; `now` (null: that clock) dates the row. An attempt of a user with a newer fence is left out.
-- form: what the program makes of a sample. An attempt whose request would be another text than the one that was sent is parked: under
-- its key the gateway would refuse it, and in a list of another form it may not stand.
CREATE OR REPLACE FUNCTION send_payments(
  p_token bigint, p_worker text, p_now timestamptz, p_ids bigint[], p_limit_ms bigint, p_form text,
  OUT sent bigint, OUT captured bigint, OUT declined bigint, OUT refunded bigint, OUT due_again bigint, OUT effects bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_now timestamptz := coalesce(p_now, now());
  v_due timestamptz := now();
  v_form text := encode(sha256(convert_to(p_form, 'UTF8')), 'hex');
BEGIN
  PERFORM check_batch(p_token, p_now);
  IF (p_limit_ms BETWEEN 1 AND 3600000 AND p_form > '') IS NOT TRUE THEN
    RAISE EXCEPTION 'there is a form, and the limit is % ms, not 1 to 3600000', p_limit_ms USING ERRCODE = 'LL002';
  END IF;
  UPDATE payments AS p
     SET state = 'sent', calls = calls + 1, first_sent_at = coalesce(first_sent_at, v_due),
         asked_at = CASE WHEN payment_looks(calls + 1, first_sent_at) THEN asked_at ELSE v_due END, fence = p_token, worker = p_worker, at = v_now,
         due_at = v_due + p_limit_ms * interval '1 millisecond', text_hash = h.hash
    FROM users AS u,
         (SELECT payment_id AS id, text_hash(v_form, concat_ws('/', kind, source, leg), attempt_no, amount_minor, currency, customer, method) AS hash
            FROM payments WHERE payment_id = ANY (p_ids)) AS h
   WHERE p.payment_id = ANY (p_ids) AND p.state IN ('planned', 'sent', 'unknown') AND p.due_at <= v_due
     AND u.user_id = p.user_id AND u.fence <= p_token AND p.fence < p_token
     AND h.id = p.payment_id AND (p.calls = 0 OR p.text_hash = h.hash) IS NOT FALSE;
  GET DIAGNOSTICS sent = ROW_COUNT;
  IF sent < cardinality(p_ids) THEN -- of those that were due, only the text can have kept any
    PERFORM park_rows('payments', array_agg(payment_id), p_token, p_worker,
                      'the request would be another text than was sent: set gateway.kind back, then ledgerlock parked release looks it up')
      FROM payments AS p JOIN users AS u USING (user_id)
     WHERE p.payment_id = ANY (p_ids) AND p.state IN ('planned', 'sent', 'unknown') AND p.due_at <= v_due AND u.fence <= p_token AND p.fence < p_token
    HAVING count(*) > 0;
  END IF;
  captured := 0; -- the answers come later
  declined := 0;
  refunded := 0;
  due_again := 0;
  effects := sent;
END $$;
COMMENT ON FUNCTION send_payments IS
  'Writes down that the attempts of a batch are sent, before they are. Errors: LL002 bad argument.';
REVOKE ALL ON FUNCTION send_payments FROM PUBLIC;
GRANT EXECUTE ON FUNCTION send_payments TO ledgerlock_worker;

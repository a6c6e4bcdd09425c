-- settle_payments(worker, now, ids, tokens, outcomes, references, reasons, pauses), in parallel arrays: what the gateway answered to
-- calls that were sent with these tokens, in a transaction of its own; its effects carry the highest of them. An outcome is
--   captured  the gateway has carried it out: the period is paid, the order is fulfilled, or the money is back on the card
--   declined  final for this attempt: the pauses of retry_schedules count as after a decline of the wallet, but no try follows a hard
--             decline (is_hard_decline); an order is rejected
--   unknown   no answer that decides: the same call is made again after its pause (milliseconds)
--   stored    the same, and the gateway says that it will answer so again: the next call looks it up
--   later     the call was not carried out: the same, and an attempt that was never unknown is planned again
--   void      the gateway was asked, and has nothing of it: period or order are due again, and their job plans another attempt
--   refused   the request itself is wrong: parked, and a person must decide
-- Attempts for charges and others are settled in different calls, since a transaction has one row of batches (one_batch_per_transaction).
-- Users, then SKUs, are locked in key order, but none that another session has: the attempts of those are not settled here, nor those of
-- a user whose fence is above the token. Nor is an attempt that another batch has sent again: its answer is the same, since the key is.
-- Returns the ids that are settled, now or before, or that another batch has, how many captured, declined and given back, and of how many the
-- period or order is due for its job now: the next period, or the same again after a void attempt.
CREATE OR REPLACE FUNCTION settle_payments(
  p_worker text, p_now timestamptz, p_ids bigint[], p_tokens bigint[], p_outcomes text[], p_references text[], p_reasons text[],
  p_pauses_ms bigint[], OUT settled bigint[], OUT captured bigint, OUT declined bigint, OUT refunded bigint, OUT due_again bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_token bigint := (SELECT max(t) FROM unnest(p_tokens) AS t);
  v_now   timestamptz;
  v_due   timestamptz := now();
  v_users bigint[];
  v_skus  bigint[];
  v_ids   bigint[]; -- whose state this call changes
  v_parks boolean;  -- some of them are parked, for charges, for others
  v_charges boolean;
  v_others boolean;
BEGIN
  PERFORM check_batch(v_token, p_now);
  SELECT greatest(coalesce(p_now, now()), max(source_at)) INTO v_now -- a worker with another --now planned it
    FROM payments WHERE payment_id = ANY (p_ids);
  SELECT array_agg(user_id) INTO v_users
    FROM (SELECT user_id FROM users
           WHERE user_id IN (SELECT user_id FROM payments WHERE payment_id = ANY (p_ids))
           ORDER BY user_id FOR NO KEY UPDATE SKIP LOCKED) AS locked;
  SELECT coalesce(array_agg(sku_id), '{}') INTO v_skus
    FROM (SELECT sku_id FROM stock
           WHERE sku_id IN (SELECT l.sku_id
                              FROM unnest(p_ids, p_outcomes) AS a (id, outcome)
                              JOIN payments AS p ON p.payment_id = a.id AND p.kind = 'payment' AND p.user_id = ANY (v_users)
                              JOIN order_lines AS l ON l.order_id = p.source
                             WHERE a.outcome IN ('captured', 'declined', 'void'))
           ORDER BY sku_id FOR NO KEY UPDATE SKIP LOCKED) AS locked;
  WITH answered AS (
    UPDATE payments AS p
       SET state = CASE a.outcome WHEN 'refused' THEN 'parked' WHEN 'stored' THEN 'unknown' WHEN 'later' THEN CASE p.calls WHEN 1 THEN 'planned' ELSE 'unknown' END
                                  ELSE a.outcome END,
           calls = CASE WHEN a.outcome = 'later' AND p.calls = 1 THEN 0 WHEN a.outcome = 'stored' THEN greatest(p.calls, 3) ELSE p.calls END,
           first_sent_at = CASE WHEN a.outcome = 'later' AND p.calls = 1 THEN NULL ELSE p.first_sent_at END,
           asked_at = CASE WHEN a.outcome = 'later' AND p.calls = 1 THEN NULL ELSE p.asked_at END,
           reference = coalesce(a.reference, p.reference), reason = a.reason, worker = p_worker, at = v_now,
           due_at = v_due + coalesce(a.pause_ms, 0) * interval '1 millisecond'
      FROM unnest(p_ids, p_tokens, p_outcomes, p_references, p_reasons, p_pauses_ms) AS a (id, token, outcome, reference, reason, pause_ms), users AS u
     WHERE p.payment_id = a.id AND p.user_id = ANY (v_users) AND p.state = 'sent' AND p.fence = a.token
       AND u.user_id = p.user_id AND u.fence <= a.token
       AND (p.kind <> 'payment' OR a.outcome NOT IN ('captured', 'declined', 'void')
            OR NOT EXISTS (SELECT FROM order_lines WHERE order_id = p.source AND sku_id <> ALL (v_skus)))
    RETURNING p.payment_id, p.kind, p.state
  )
  SELECT array_agg(payment_id ORDER BY payment_id), count(*) FILTER (WHERE state = 'captured' AND kind <> 'refund'),
         count(*) FILTER (WHERE state = 'declined'), count(*) FILTER (WHERE state = 'captured' AND kind = 'refund'),
         bool_or(state = 'parked'), bool_or(kind = 'charge'), bool_or(kind <> 'charge')
    INTO v_ids, captured, declined, refunded, v_parks, v_charges, v_others
    FROM answered;
  IF v_parks THEN
    INSERT INTO lock_incidents (resource, token, worker, kind, phase, detail)
    SELECT 'payment:' || payment_id, fence, p_worker, 'parked', 'settle', coalesce(reason, '')
      FROM payments WHERE payment_id = ANY (v_ids) AND state = 'parked';
  END IF;
  SELECT array_agg(p.payment_id) INTO settled
    FROM unnest(p_ids, p_tokens) AS a (id, token) JOIN payments AS p ON p.payment_id = a.id
   WHERE NOT (p.state = 'sent' AND p.fence = a.token);
  IF v_charges THEN
    PERFORM settle_charges(v_ids, v_token, p_worker, v_now);
    SELECT count(*) INTO due_again
      FROM payments AS p JOIN subscriptions AS s ON s.subscription_id = p.source
     WHERE p.payment_id = ANY (v_ids) AND p.kind = 'charge' AND s.state IN ('active', 'past_due') AND s.next_due_at <= v_now;
  END IF;
  IF v_others THEN
    PERFORM settle_orders(v_ids, v_token, p_worker, v_now);
    SELECT count(*) INTO due_again FROM payments WHERE payment_id = ANY (v_ids) AND kind = 'payment' AND state = 'void';
    PERFORM plan_refund(source, attempt_no + 1) FROM payments WHERE payment_id = ANY (v_ids) AND kind = 'refund' AND state = 'void';
  END IF;
END $$;
COMMENT ON FUNCTION settle_payments IS
  'Writes down what the gateway answered, and what follows for charges, orders and refunds. Returns the attempts that are settled. Errors: LL002 bad argument, 23505 attempts for charges and others together.';
REVOKE ALL ON FUNCTION settle_payments FROM PUBLIC;
GRANT EXECUTE ON FUNCTION settle_payments TO ledgerlock_worker;

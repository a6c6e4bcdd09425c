-- settle_payments(worker, now, ids, tokens, outcomes, references, reasons, pauses), in parallel arrays: what the gateway answered to
-- calls that were sent with these tokens, in a transaction of its own; its charges carry the highest of them. An outcome is
--   captured  the money is ours: the period is paid, and the subscription goes on with the next one
--   declined  final for this attempt: as a decline of the wallet, the pauses of retry_schedules count
--   unknown   no answer that decides: the same call is made again after its pause (milliseconds)
--   later     the call was not carried out: the same, and an attempt that was never unknown is planned again
--   void      the gateway was asked, and has nothing of it: the period is due again, and billing plans another attempt
--   refused   the request itself is wrong: parked, and a person must decide
-- Users are locked in key order, but none that another session has: the attempts of those are not settled here, nor those of a user
-- whose fence is above the token. Nor is an attempt that another batch has sent again: its answer is the same, since the key is.
-- Returns the ids that are settled, now or before, or that another batch has, and how many captured and declined.
CREATE OR REPLACE FUNCTION settle_payments(
  p_worker text, p_now timestamptz, p_ids bigint[], p_tokens bigint[], p_outcomes text[], p_references text[], p_reasons text[],
  p_pauses_ms bigint[], OUT settled bigint[], OUT captured bigint, OUT declined bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_token  bigint := (SELECT max(t) FROM unnest(p_tokens) AS t);
  v_now    timestamptz := coalesce(p_now, now());
  v_due    timestamptz := now();
  v_pauses bigint[];
  v_users  bigint[];
  v_ids    bigint[]; -- captured or declined
BEGIN
  PERFORM check_batch(v_token, p_now);
  SELECT pauses_s INTO STRICT v_pauses FROM retry_schedules ORDER BY schedule_id DESC LIMIT 1;
  SELECT array_agg(user_id) INTO v_users
    FROM (SELECT user_id FROM users
           WHERE user_id IN (SELECT user_id FROM payments WHERE payment_id = ANY (p_ids))
           ORDER BY user_id FOR NO KEY UPDATE SKIP LOCKED) AS locked;
  WITH answered AS (
    UPDATE payments AS p
       SET state = CASE a.outcome WHEN 'refused' THEN 'parked' WHEN 'later' THEN CASE p.calls WHEN 1 THEN 'planned' ELSE 'unknown' END
                                  ELSE a.outcome END,
           calls = CASE WHEN a.outcome = 'later' AND p.calls = 1 THEN 0 ELSE p.calls END,
           first_sent_at = CASE WHEN a.outcome = 'later' AND p.calls = 1 THEN NULL ELSE p.first_sent_at END,
           asked_at = CASE WHEN a.outcome = 'later' AND p.calls = 1 THEN NULL ELSE p.asked_at END,
           reference = coalesce(a.reference, p.reference), reason = a.reason, worker = p_worker, at = v_now,
           due_at = v_due + coalesce(a.pause_ms, 0) * interval '1 millisecond'
      FROM unnest(p_ids, p_tokens, p_outcomes, p_references, p_reasons, p_pauses_ms) AS a (id, token, outcome, reference, reason, pause_ms), users AS u
     WHERE p.payment_id = a.id AND p.user_id = ANY (v_users) AND p.state = 'sent' AND p.fence = a.token
       AND u.user_id = p.user_id AND u.fence <= a.token
    RETURNING p.payment_id, p.state, p.fence, p.reason
  )
  INSERT INTO lock_incidents (resource, token, worker, kind, phase, detail)
  SELECT 'payment:' || payment_id, fence, p_worker, 'parked', 'settle', coalesce(reason, '') FROM answered WHERE state = 'parked';
  SELECT array_agg(p.payment_id) INTO settled
    FROM unnest(p_ids, p_tokens) AS a (id, token) JOIN payments AS p ON p.payment_id = a.id
   WHERE NOT (p.state = 'sent' AND p.fence = a.token);
  -- After a COMMIT whose answer was lost the call is made again: then the subscription is paying no more.
  SELECT array_agg(p.payment_id ORDER BY p.payment_id), count(*) FILTER (WHERE p.state = 'captured'), count(*) FILTER (WHERE p.state = 'declined')
    INTO v_ids, captured, declined
    FROM unnest(p_ids, p_tokens) AS a (id, token) JOIN payments AS p ON p.payment_id = a.id JOIN subscriptions AS s USING (subscription_id)
   WHERE p.state IN ('captured', 'declined') AND p.fence = a.token
     AND s.state = 'paying' AND s.next_period_no = p.period_no;
  UPDATE subscriptions AS s SET state = CASE WHEN retries > 0 THEN 'past_due' ELSE 'active' END
    FROM unnest(p_ids, p_tokens) AS a (id, token) JOIN payments AS p ON p.payment_id = a.id
   WHERE p.state = 'void' AND p.fence = a.token AND s.subscription_id = p.subscription_id AND s.state = 'paying'
     AND s.next_period_no = p.period_no;
  IF v_ids IS NULL THEN
    RETURN;
  END IF;
  INSERT INTO charges (subscription_id, period_no, user_id, period_start, period_end, amount_minor, state, tries, fence, worker, charged_at)
  SELECT p.subscription_id, p.period_no, p.user_id, p.period_start, period_start(s.anchor_at, s.unit, s.every, p.period_no + 1),
         p.amount_minor, CASE p.state WHEN 'captured' THEN 'paid' ELSE 'declined' END, 1, v_token, p_worker, v_now
    FROM payments AS p JOIN subscriptions AS s USING (subscription_id)
   WHERE p.payment_id = ANY (v_ids) AND s.retries = 0;
  PERFORM charge_again(array_agg(p.subscription_id), array_agg(p.period_no), array_agg(p.period_start),
                       array_agg(CASE p.state WHEN 'captured' THEN 'paid' ELSE 'declined' END), array_agg(s.retries + 1), v_token, p_worker, v_now)
    FROM payments AS p JOIN subscriptions AS s USING (subscription_id)
   WHERE p.payment_id = ANY (v_ids) AND s.retries > 0
  HAVING count(*) > 0;
  WITH moved_on AS (
    UPDATE subscriptions AS s
       SET next_period_no = s.next_period_no + (p.state = 'captured')::int,
           state = CASE WHEN p.state = 'captured' THEN 'active' WHEN s.retries < cardinality(v_pauses) THEN 'past_due' ELSE 'unpaid' END,
           next_due_at = CASE WHEN p.state = 'captured' THEN period_start(s.anchor_at, s.unit, s.every, p.period_no + 1)
                              WHEN s.retries < cardinality(v_pauses) THEN v_now + v_pauses[s.retries + 1] * interval '1 second'
                              ELSE s.next_due_at END,
           retries = CASE p.state WHEN 'captured' THEN 0 ELSE s.retries + 1 END
      FROM (SELECT p.payment_id, p.subscription_id, p.period_no, p.state, p.amount_minor, p.reason, s.retries AS declines
              FROM payments AS p JOIN subscriptions AS s USING (subscription_id)
             WHERE p.payment_id = ANY (v_ids)) AS p
     WHERE s.subscription_id = p.subscription_id AND s.state = 'paying' AND s.next_period_no = p.period_no
    RETURNING s.*, p.state AS outcome, p.declines, p.amount_minor AS minor, p.reason AS why
  )
  INSERT INTO events (subscription_id, event, state, next_period_no, retries, next_due_at, cancel_at, user_id, try_no, amount_minor, reason,
                      token, worker, at)
  SELECT subscription_id, outcome, state, next_period_no, retries, next_due_at, cancel_at, user_id, declines + 1, minor, why,
         v_token, p_worker, v_now
    FROM moved_on
   WHERE outcome = 'declined' OR declines > 0;
  INSERT INTO batches (job, token, worker, at, done, refused, ids, periods, feed_no)
  SELECT 'payments', v_token, p_worker, v_now, count(*) FILTER (WHERE state = 'captured'), count(*) FILTER (WHERE state = 'declined'),
         array_agg(subscription_id), array_agg(period_no), next_feed_no()
    FROM payments WHERE payment_id = ANY (v_ids);
END $$;
COMMENT ON FUNCTION settle_payments IS
  'Writes down what the gateway answered, and what follows for charges and subscriptions. Returns the attempts that are settled. Errors: LL002 bad argument.';
REVOKE ALL ON FUNCTION settle_payments FROM PUBLIC;
GRANT EXECUTE ON FUNCTION settle_payments TO ledgerlock_worker;

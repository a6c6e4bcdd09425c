-- settle_charges(payments, token, worker, now): what follows for periods from attempts that were captured, declined or found void a
-- moment ago, for settle_payments, which has locked the users. Attempts of other kinds are passed over.
CREATE OR REPLACE FUNCTION settle_charges(p_ids bigint[], p_token bigint, p_worker text, p_now timestamptz)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  v_pauses bigint[];
  v_ids    bigint[]; -- captured or declined
  v_void   boolean;
  v_first  bigint;   -- of them: first tries
BEGIN
  SELECT array_agg(payment_id) FILTER (WHERE state IN ('captured', 'declined')), bool_or(state = 'void') INTO v_ids, v_void
    FROM payments WHERE payment_id = ANY (p_ids) AND kind = 'charge';
  IF v_void THEN
    UPDATE subscriptions AS s SET state = CASE WHEN retries > 0 THEN 'past_due' ELSE 'active' END
      FROM payments AS p
     WHERE p.payment_id = ANY (p_ids) AND p.kind = 'charge' AND p.state = 'void' AND s.subscription_id = p.source AND s.state = 'paying';
  END IF;
  IF v_ids IS NULL THEN
    RETURN;
  END IF;
  SELECT pauses_s INTO STRICT v_pauses FROM retry_schedules ORDER BY schedule_id DESC LIMIT 1;
  INSERT INTO charges (subscription_id, period_no, user_id, period_start, period_end, amount_minor, state, tries, fence, worker, charged_at)
  SELECT p.source, p.leg, p.user_id, p.source_at, period_start(s.anchor_at, s.unit, s.every, p.leg + 1),
         p.amount_minor, CASE p.state WHEN 'captured' THEN 'paid' ELSE 'declined' END, 1, p_token, p_worker, p_now
    FROM payments AS p JOIN subscriptions AS s ON s.subscription_id = p.source
   WHERE p.payment_id = ANY (v_ids) AND s.retries = 0;
  GET DIAGNOSTICS v_first = ROW_COUNT;
  IF v_first < cardinality(v_ids) THEN
    PERFORM charge_again(array_agg(p.source), array_agg(p.leg), array_agg(p.source_at),
                         array_agg(CASE p.state WHEN 'captured' THEN 'paid' ELSE 'declined' END), array_agg(s.retries + 1), p_token, p_worker, p_now)
      FROM payments AS p JOIN subscriptions AS s ON s.subscription_id = p.source
     WHERE p.payment_id = ANY (v_ids) AND s.retries > 0;
  END IF;
  WITH moved_on AS (
    UPDATE subscriptions AS s
       SET next_period_no = s.next_period_no + (p.state = 'captured')::int,
           state = CASE WHEN p.state = 'captured' THEN 'active' WHEN p.pause_s IS NULL THEN 'unpaid' ELSE 'past_due' END,
           next_due_at = CASE WHEN p.state = 'captured' THEN period_start(s.anchor_at, s.unit, s.every, p.leg + 1)
                              ELSE coalesce(p_now + p.pause_s * interval '1 second', s.next_due_at) END,
           retries = CASE p.state WHEN 'captured' THEN 0 ELSE s.retries + 1 END
      FROM (SELECT p.source, p.leg, p.state, p.amount_minor, p.reason, s.retries AS declines,
                   CASE WHEN NOT is_hard_decline(p.reason) THEN v_pauses[s.retries + 1] END AS pause_s -- null: no try follows
              FROM payments AS p JOIN subscriptions AS s ON s.subscription_id = p.source
             WHERE p.payment_id = ANY (v_ids)) AS p
     WHERE s.subscription_id = p.source AND s.state = 'paying' AND s.next_period_no = p.leg
    RETURNING s.*, p.state AS outcome, p.declines, p.amount_minor AS minor, p.reason AS why
  )
  INSERT INTO events (subscription_id, event, state, next_period_no, retries, next_due_at, cancel_at, user_id, try_no, amount_minor, reason,
                      token, worker, at)
  SELECT subscription_id, outcome, state, next_period_no, retries, next_due_at, cancel_at, user_id, declines + 1, minor, why,
         p_token, p_worker, p_now
    FROM moved_on
   WHERE outcome = 'declined' OR declines > 0;
  INSERT INTO batches (job, token, worker, at, done, refused, ids, periods, feed_no)
  SELECT 'payments', p_token, p_worker, p_now, count(*) FILTER (WHERE state = 'captured'), count(*) FILTER (WHERE state = 'declined'),
         array_agg(source), array_agg(leg), next_feed_no()
    FROM payments WHERE payment_id = ANY (v_ids);
END $$;
COMMENT ON FUNCTION settle_charges IS 'What follows for periods from attempts that the gateway has answered.';
REVOKE ALL ON FUNCTION settle_charges FROM PUBLIC;

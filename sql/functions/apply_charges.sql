-- apply_charges(token, worker, now, ids, places, payers, catch_up_max): charges one period of each subscription of
-- the batch: re-reads what is due, decides, and writes every effect.
-- The users must have been claimed by an earlier statement of this transaction, so the snapshot of
-- this statement is younger than the row locks.
-- The periods of one user are charged in the order of their due time while the balance lasts. The first that does not
-- fit is declined, and so is every period that costs more than the whole balance. The periods behind the first that
-- does not fit are deferred to the next batch, which reads the new balance.
-- A subscription is read by its place (ctid) from the pull, which saves an index scan, and by its key: one that was written
-- since the pull is not found there, and stays due for the next pull. A wallet is read at a fence that is not above the
-- token. If fewer effects are written than decided, the function raises an error, and the batch is rolled back.
-- A period of a user who pays by card is neither captured nor declined here: plan_payments writes the attempt that the job
-- payments makes, and the subscription is paying until settle_charges knows the answer.
-- The pauses after declines come from the newest row of retry_schedules, which no worker writes.
-- Every decline, later try and cancellation is an event, and the transaction is a row of batches.
-- The parameters and the columns are those of billing_apply_charges; effects are the rows that carry the token.
-- Guards: users.fence <= token; version of the subscription; unique (subscription, period, start);
-- balance >= 0.
CREATE OR REPLACE FUNCTION apply_charges(
  p_token bigint, p_worker text, p_now timestamptz, p_ids bigint[], p_places tid[], p_payers bigint[],
  p_catch_up_max bigint,
  OUT captured bigint, OUT declined bigint, OUT planned bigint, OUT cancelled bigint, OUT deferred bigint, OUT due_again bigint, OUT effects bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
  v_now      timestamptz := coalesce(p_now, now());
  v_long_ago timestamptz := v_now - p_catch_up_max * interval '1 day'; -- no period is shorter than a day
  v_pauses   bigint[];
  v_last     integer; -- the number of tries after the first
  -- Each subscription as it was read, and what it becomes. A deferred period has no outcome.
  v_ids bigint[]; v_places tid[]; v_versions xid[]; v_periods bigint[]; v_retries int[]; v_starts timestamptz[]; v_ends timestamptz[];
  v_users bigint[]; v_wallets tid[]; v_balances bigint[]; v_amounts bigint[]; v_outcomes text[]; v_states text[]; v_dues timestamptz[];
  v_tried bigint[]; v_tried_periods bigint[]; v_declined_before boolean;
  v_payers bigint; v_decided bigint; v_written bigint; v_rows bigint; -- how many rows of all tables
BEGIN
  PERFORM check_batch(p_token, p_now);
  IF (p_catch_up_max BETWEEN 1 AND 1000000) IS NOT TRUE THEN
    RAISE EXCEPTION 'catch_up_max is %, not 1 to 1000000', p_catch_up_max USING ERRCODE = 'LL002';
  END IF;
  SELECT pauses_s, cardinality(pauses_s) INTO STRICT v_pauses, v_last FROM retry_schedules ORDER BY schedule_id DESC LIMIT 1;
  WITH due AS (
    SELECT asked.place, s.version, s.subscription_id, s.user_id, s.price_minor AS amount_minor, s.next_period_no AS period_no,
           s.next_due_at, s.retries, w.wallet, w.balance_minor, w.by_card AND s.price_minor > 0 AS by_card,
           period_start(s.anchor_at, s.unit, s.every, s.next_period_no) AS starts,
           period_start(s.anchor_at, s.unit, s.every, s.next_period_no + 1) AS ends,
           s.cancel_at
      FROM unnest(p_ids, p_places, p_payers) AS asked (id, place, user_id)
     CROSS JOIN LATERAL (SELECT *, xmin AS version,
                                CASE WHEN trial_periods > next_period_no THEN 0
                                     WHEN terms_from_no <= next_period_no -- null: its terms never changed; as terms_of
                                     THEN (SELECT coalesce((array_agg(t.quantity ORDER BY t.terms_id DESC) FILTER (WHERE t.quantity > 0))[1], 1)
                                                  * coalesce((array_agg(t.unit_minor ORDER BY t.terms_id DESC) FILTER (WHERE t.unit_minor >= 0))[1], amount_minor)
                                             FROM subscription_terms AS t
                                            WHERE t.subscription_id = asked.id AND t.from_period <= next_period_no)
                                     ELSE amount_minor END AS price_minor
                           FROM subscriptions
                          WHERE subscription_id = asked.id AND user_id = asked.user_id
                            AND ctid = asked.place
                         OFFSET 0) AS s -- OFFSET 0: read by place, also in a plan that was made while the table was empty
     CROSS JOIN LATERAL (SELECT ctid AS wallet, balance_minor, card_customer IS NOT NULL AS by_card FROM users
                          WHERE user_id = asked.user_id AND fence <= p_token
                         OFFSET 0) AS w
     WHERE s.state IN ('active', 'past_due')
       AND s.next_due_at <= v_now
       AND (s.next_due_at > v_long_ago
            OR check_catch_up(s.subscription_id, s.anchor_at, s.unit, s.every, s.next_period_no, least(v_now, s.cancel_at), p_catch_up_max))
  ), judged AS (
    SELECT *, cancel_at IS NOT NULL AND starts >= cancel_at AS over, amount_minor > balance_minor AND NOT by_card AS is_dear FROM due
  ), summed AS (
    SELECT *, balance_minor - sum(CASE WHEN over OR is_dear OR by_card THEN 0 ELSE amount_minor END)
                                OVER (PARTITION BY user_id ORDER BY next_due_at, subscription_id) AS rest
      FROM judged
  ), decided AS (
    SELECT *, CASE WHEN over THEN 'cancelled' WHEN by_card THEN 'planned' WHEN is_dear THEN 'declined' WHEN rest >= 0 THEN 'captured'
                   WHEN rest + amount_minor >= 0 THEN 'declined' END AS outcome
      FROM summed
  )
  SELECT array_agg(subscription_id), array_agg(place), array_agg(version), array_agg(period_no), array_agg(retries), array_agg(starts), array_agg(ends),
         array_agg(user_id), array_agg(wallet), array_agg(balance_minor), array_agg(amount_minor), array_agg(outcome),
         array_agg(CASE outcome WHEN 'captured' THEN 'active' WHEN 'cancelled' THEN 'cancelled' WHEN 'planned' THEN 'paying'
                        ELSE CASE WHEN retries < v_last THEN 'past_due' ELSE 'unpaid' END END),
         array_agg(CASE WHEN outcome = 'captured' THEN ends
                        WHEN outcome = 'declined' AND retries < v_last THEN v_now + v_pauses[retries + 1] * interval '1 second'
                        ELSE next_due_at END),
         array_agg(subscription_id) FILTER (WHERE outcome IN ('captured', 'declined')),
         array_agg(period_no) FILTER (WHERE outcome IN ('captured', 'declined')),
         coalesce(bool_or(retries > 0), false),
         count(*) FILTER (WHERE outcome = 'captured'), count(*) FILTER (WHERE outcome = 'declined'), count(*) FILTER (WHERE outcome = 'planned'),
         count(*) FILTER (WHERE outcome = 'cancelled'), count(*) FILTER (WHERE outcome IS NULL),
         count(*) FILTER (WHERE outcome IS NULL OR (outcome = 'captured' AND ends <= v_now)),
         count(DISTINCT user_id) FILTER (WHERE outcome = 'captured'),
         count(outcome) + count(*) FILTER (WHERE outcome IN ('captured', 'declined', 'planned'))
           + count(*) FILTER (WHERE outcome IN ('cancelled', 'declined') OR (outcome = 'captured' AND retries > 0))
    INTO v_ids, v_places, v_versions, v_periods, v_retries, v_starts, v_ends, v_users, v_wallets, v_balances, v_amounts, v_outcomes,
         v_states, v_dues, v_tried, v_tried_periods, v_declined_before,
         captured, declined, planned, cancelled, deferred, due_again, v_payers, v_decided
    FROM decided;
  effects := captured + declined + planned;
  v_decided := v_decided + v_payers + (captured + declined > 0)::int;

  INSERT INTO charges (subscription_id, period_no, user_id, period_start, period_end, amount_minor, state, tries, fence, worker, charged_at)
  SELECT id, period_no, user_id, starts, ends, amount, outcome, 1, p_token, p_worker, v_now
    FROM unnest(v_ids, v_periods, v_users, v_starts, v_ends, v_amounts, v_outcomes, v_retries)
         AS d (id, period_no, user_id, starts, ends, amount, outcome, retries)
   WHERE retries = 0 AND outcome IN ('captured', 'declined');
  GET DIAGNOSTICS v_written = ROW_COUNT;
  IF v_declined_before THEN
    SELECT coalesce(charge_again(array_agg(id), array_agg(period_no), array_agg(starts), array_agg(outcome), array_agg(retries + 1),
                                 p_token, p_worker, v_now), 0) INTO v_rows
      FROM unnest(v_ids, v_periods, v_starts, v_outcomes, v_retries) AS d (id, period_no, starts, outcome, retries)
     WHERE retries > 0 AND outcome IN ('captured', 'declined');
    v_written := v_written + v_rows;
  END IF;
  IF planned > 0 THEN
    SELECT plan_payments('charge', array_agg(id), array_agg(period_no), array_agg(starts), array_agg(amount), p_token, p_worker, v_now) INTO v_rows
      FROM unnest(v_ids, v_periods, v_starts, v_amounts, v_outcomes) AS d (id, period_no, starts, amount, outcome)
     WHERE outcome = 'planned';
    v_written := v_written + v_rows;
  END IF;
  UPDATE subscriptions AS s
     SET next_period_no = s.next_period_no + (d.outcome = 'captured')::int, state = d.state, next_due_at = d.due,
         retries = CASE d.outcome WHEN 'captured' THEN 0 WHEN 'declined' THEN s.retries + 1 ELSE s.retries END
    FROM unnest(v_ids, v_places, v_versions, v_periods, v_retries, v_outcomes, v_states, v_dues)
         AS d (id, place, version, period_no, retries, outcome, state, due)
   WHERE d.outcome IS NOT NULL AND s.ctid = d.place AND s.xmin = d.version
     AND s.subscription_id IS NOT DISTINCT FROM d.id -- not =: by place, also in a plan that was made while the table was empty
     AND s.next_period_no = d.period_no AND s.retries = d.retries; -- as it was read, also for a caller without the claim
  GET DIAGNOSTICS v_rows = ROW_COUNT;
  v_written := v_written + v_rows;
  IF v_declined_before OR declined + cancelled > 0 THEN -- a period that is captured at its first try has no event
    INSERT INTO events (subscription_id, event, state, next_period_no, retries, next_due_at,
                        cancel_at, user_id, try_no, amount_minor, token, worker, at)
    SELECT s.subscription_id, d.outcome, s.state, s.next_period_no, s.retries, s.next_due_at, s.cancel_at, s.user_id,
           CASE WHEN d.outcome <> 'cancelled' THEN d.retries + 1 END, CASE WHEN d.outcome <> 'cancelled' THEN d.amount END,
           p_token, p_worker, v_now
      FROM unnest(v_ids, v_outcomes, v_retries, v_amounts) AS d (id, outcome, retries, amount)
      JOIN subscriptions AS s ON s.subscription_id = d.id
     WHERE d.outcome IN ('declined', 'cancelled') OR (d.outcome = 'captured' AND d.retries > 0);
    GET DIAGNOSTICS v_rows = ROW_COUNT;
    v_written := v_written + v_rows;
  END IF;
  UPDATE users AS u
     SET balance_minor = u.balance_minor - p.amount, fence = p_token
    FROM (SELECT id, place, balance, sum(amount)::bigint AS amount
            FROM unnest(v_users, v_wallets, v_balances, v_amounts, v_outcomes) AS d (id, place, balance, amount, outcome)
           WHERE outcome = 'captured' GROUP BY id, place, balance) AS p
   WHERE u.user_id = p.id AND u.fence <= p_token
     AND u.ctid = p.place
     AND u.balance_minor = p.balance; -- as it was read, also for a caller that has not claimed the user
  GET DIAGNOSTICS v_rows = ROW_COUNT;
  v_written := v_written + v_rows;
  IF captured + declined > 0 THEN
    INSERT INTO batches (job, token, worker, at, done, refused, ids, periods, feed_no)
    VALUES ('billing', p_token, p_worker, v_now, captured, declined, v_tried, v_tried_periods, next_feed_no());
    GET DIAGNOSTICS v_rows = ROW_COUNT;
    v_written := v_written + v_rows;
  END IF;
  IF v_decided <> v_written THEN
    RAISE EXCEPTION 'decided and written differ: % and %', v_decided, v_written USING ERRCODE = 'internal_error';
  END IF;
END $$;
COMMENT ON FUNCTION apply_charges IS
  'Charges one period of each subscription of a batch, whose users the transaction has claimed. Errors: LL002 bad argument, XX000 not all that was decided could be written.';
REVOKE ALL ON FUNCTION apply_charges FROM PUBLIC;
GRANT EXECUTE ON FUNCTION apply_charges TO ledgerlock_worker;

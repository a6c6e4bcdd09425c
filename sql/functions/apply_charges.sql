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
  v_pauses  bigint[];
  v_feed_no bigint := next_feed_no();
  v_decided bigint;
  v_written bigint;
BEGIN
  PERFORM check_batch($1, $3);
  IF (p_catch_up_max BETWEEN 1 AND 1000000) IS NOT TRUE THEN
    RAISE EXCEPTION 'catch_up_max is %, not 1 to 1000000', p_catch_up_max USING ERRCODE = 'LL002';
  END IF;
  SELECT pauses_s INTO STRICT v_pauses FROM retry_schedules ORDER BY schedule_id DESC LIMIT 1;
WITH clock AS (
  SELECT coalesce($3::timestamptz, now()) AS now, coalesce($3::timestamptz, now()) - $7::bigint * interval '1 day' AS long_ago
), due AS (
  SELECT asked.place, s.version, s.subscription_id, s.user_id, s.price_minor AS amount_minor,
         s.next_period_no AS period_no,
         s.next_due_at, s.retries, w.wallet, w.balance_minor, w.by_card AND s.price_minor > 0 AS by_card,
         period_start(s.anchor_at, s.unit, s.every, s.next_period_no) AS starts,
         period_start(s.anchor_at, s.unit, s.every, s.next_period_no + 1) AS ends,
         s.cancel_at
    FROM unnest($4::bigint[], $5::tid[], $6::bigint[]) AS asked (id, place, user_id)
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
                        WHERE user_id = asked.user_id AND fence <= $1
                       OFFSET 0) AS w
   WHERE s.state IN ('active', 'past_due')
     AND s.next_due_at <= (SELECT now FROM clock)
     AND (s.next_due_at > (SELECT long_ago FROM clock) -- no period is shorter than a day
          OR check_catch_up(s.subscription_id, s.anchor_at, s.unit, s.every, s.next_period_no,
                                       least((SELECT now FROM clock), s.cancel_at), $7::bigint))
), judged AS (
  SELECT *, cancel_at IS NOT NULL AND starts >= cancel_at AS over, amount_minor > balance_minor AND NOT by_card AS is_dear FROM due
), summed AS (
  SELECT *, balance_minor - sum(CASE WHEN over OR is_dear OR by_card THEN 0 ELSE amount_minor END)
                              OVER (PARTITION BY user_id ORDER BY next_due_at, subscription_id) AS rest
    FROM judged
), decided AS MATERIALIZED ( -- only the columns that the effects need: every row is copied
  SELECT place, version, subscription_id, user_id, wallet, balance_minor, amount_minor, period_no, retries,
         starts, ends, over,
         NOT over AND NOT is_dear AND NOT by_card AND rest >= 0 AS captured,
         NOT over AND NOT by_card AND (is_dear OR (rest < 0 AND rest + amount_minor >= 0)) AS declined,
         NOT over AND by_card AS planned,
         over OR is_dear OR by_card OR rest + amount_minor >= 0 AS is_decided
    FROM summed
), first_try AS (
  INSERT INTO charges (subscription_id, period_no, user_id, period_start, period_end,
                                  amount_minor, state, tries, fence, worker, charged_at)
  SELECT subscription_id, period_no, user_id, starts, ends, amount_minor,
         CASE WHEN captured THEN 'captured' ELSE 'declined' END, 1, $1, $2::text, (SELECT now FROM clock)
    FROM decided
   WHERE (captured OR declined) AND retries = 0
  RETURNING 1
), later_try AS (
  SELECT charge_again(array_agg(subscription_id), array_agg(period_no), array_agg(starts),
                                 array_agg(CASE WHEN captured THEN 'captured' ELSE 'declined' END),
                                 array_agg(retries + 1), $1, $2::text, (SELECT now FROM clock)) AS n
    FROM decided
   WHERE (captured OR declined) AND retries > 0
  HAVING count(*) > 0
), by_card AS (
  SELECT plan_payments('charge', array_agg(subscription_id), array_agg(period_no), array_agg(starts), array_agg(amount_minor),
                       $1, $2::text, (SELECT now FROM clock)) AS n
    FROM decided
   WHERE planned
  HAVING count(*) > 0
), moved_on AS (
  UPDATE subscriptions AS s
     SET next_period_no = s.next_period_no + d.captured::int,
         state = CASE WHEN d.captured THEN 'active'
                      WHEN d.over THEN 'cancelled'
                      WHEN d.planned THEN 'paying'
                      WHEN s.retries < cardinality(v_pauses) THEN 'past_due'
                      ELSE 'unpaid' END,
         next_due_at = CASE WHEN d.captured THEN d.ends
                            WHEN d.declined AND s.retries < cardinality(v_pauses)
                              THEN (SELECT now FROM clock) + v_pauses[s.retries + 1] * interval '1 second'
                            ELSE s.next_due_at END,
         retries = CASE WHEN d.captured THEN 0 WHEN d.declined THEN s.retries + 1 ELSE s.retries END
    FROM decided AS d
   WHERE d.is_decided AND s.subscription_id = d.subscription_id
     AND s.next_period_no = d.period_no AND s.retries = d.retries -- as it was read, also for a caller without the claim
     AND s.ctid = d.place AND s.xmin = d.version
  RETURNING s.subscription_id, s.user_id, s.state, s.next_period_no, s.retries, s.next_due_at, s.cancel_at, d.amount_minor,
            d.captured, d.declined, d.planned, d.retries AS declines
), journaled AS ( -- a period that is captured at its first try has no event
  INSERT INTO events (subscription_id, event, state, next_period_no, retries, next_due_at,
                      cancel_at, user_id, try_no, amount_minor, token, worker, at)
  SELECT subscription_id, CASE WHEN captured THEN 'captured' WHEN declined THEN 'declined' ELSE 'cancelled' END,
         state, next_period_no, retries, next_due_at, cancel_at, user_id,
         CASE WHEN captured OR declined THEN declines + 1 END, CASE WHEN captured OR declined THEN amount_minor END,
         $1, $2::text, (SELECT now FROM clock)
    FROM moved_on
   WHERE NOT planned AND (NOT captured OR declines > 0)
  RETURNING 1
), paid AS (
  UPDATE users AS u
     SET balance_minor = u.balance_minor - p.amount_minor, fence = $1
    FROM (SELECT user_id, wallet, balance_minor, sum(amount_minor)::bigint AS amount_minor
            FROM decided WHERE captured GROUP BY user_id, wallet, balance_minor) AS p
   WHERE u.user_id = p.user_id AND u.fence <= $1
     AND u.ctid = p.wallet
     AND u.balance_minor = p.balance_minor -- as it was read, also for a caller that has not claimed the user
  RETURNING 1
), batch AS (
  INSERT INTO batches (job, token, worker, at, done, refused, ids, periods, feed_no)
  SELECT 'billing', $1, $2::text, (SELECT now FROM clock), count(*) FILTER (WHERE captured), count(*) FILTER (WHERE declined),
         array_agg(subscription_id), array_agg(period_no), v_feed_no
    FROM decided
   WHERE captured OR declined
  HAVING count(*) > 0
  RETURNING 1
), written AS (
  SELECT (SELECT count(*) FROM first_try) + (SELECT coalesce(sum(n), 0)::bigint FROM later_try)
       + (SELECT coalesce(sum(n), 0)::bigint FROM by_card) + (SELECT count(*) FROM moved_on)
       + (SELECT count(*) FROM paid) + (SELECT count(*) FROM journaled)
       + (SELECT count(*) FROM batch) AS n
)
SELECT count(*) FILTER (WHERE captured), count(*) FILTER (WHERE declined),
       count(*) FILTER (WHERE planned), count(*) FILTER (WHERE over), count(*) FILTER (WHERE NOT is_decided),
       count(*) FILTER (WHERE NOT is_decided OR (captured AND ends <= (SELECT now FROM clock))),
       count(*) FILTER (WHERE captured OR declined OR planned),
       count(*) FILTER (WHERE captured OR declined OR planned) + (count(*) FILTER (WHERE captured OR declined) > 0)::int + count(*) FILTER (WHERE is_decided)
         + count(DISTINCT user_id) FILTER (WHERE captured)
         + count(*) FILTER (WHERE is_decided AND NOT planned AND NOT (captured AND retries = 0)),
       (SELECT n FROM written)
  INTO captured, declined, planned, cancelled, deferred, due_again, effects, v_decided, v_written
  FROM decided;
  IF v_decided <> v_written THEN
    RAISE EXCEPTION 'decided and written differ: % and %', v_decided, v_written USING ERRCODE = 'internal_error';
  END IF;
END $$;
COMMENT ON FUNCTION apply_charges IS
  'Charges one period of each subscription of a batch, whose users the transaction has claimed. Errors: LL002 bad argument, XX000 not all that was decided could be written.';
REVOKE ALL ON FUNCTION apply_charges FROM PUBLIC;
GRANT EXECUTE ON FUNCTION apply_charges TO ledgerlock_worker;

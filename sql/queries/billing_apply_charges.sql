-- Charges one period of each subscription of the batch: re-reads what is due, decides, and writes every effect.
-- The users must have been claimed by an earlier statement of this transaction, so this one's snapshot is younger
-- than the waiting.
-- A user's periods are served in the order of their due time as long as the wallet lasts; the first that
-- does not fit is declined, those behind it are deferred to the next batch, when the balance is known.
-- Rows are read and written by their place (ctid), which spares every walk down an index. The wallets are locked
-- since the claim told their places and balances, so both are still true. A subscription is read again by its place
-- and its key: one that somebody wrote since it was pulled is not found there, and stays due for the next pull.
-- The count of effects written tells of one that moves while this statement runs.
-- $1 bigint: token. $2 text: worker. $3 timestamptz: now (null: the database's clock).
-- $4 bigint[]: pauses in seconds after the 1st, 2nd ... decline. Then in parallel, for each subscription:
-- $5 bigint[]: subscription ids. $6 tid[]: places, as the pull told. $7 bigint[]: payers, the user ids.
-- $8 tid[]: wallets, where they stand, as the claim told. $9 bigint[]: balances, as the claim told.
-- Columns: captured, declined, cancelled, deferred, effects decided, effects written (must be equal).
-- Guards: users.fence <= $1; state and next_period_no of the subscription; unique (subscription, period);
-- unique (kind, source, leg) of transfers; balance >= 0.
WITH instant AS (
  SELECT coalesce($3::timestamptz, now()) AS now
), due AS (
  SELECT asked.place, s.subscription_id, s.user_id, s.amount_minor, s.currency, s.next_period_no AS period_no,
         s.next_due_at, s.retries, asked.wallet, asked.balance_minor,
         ledgerlock.period_start(s.anchor_at, s.unit, s.every, s.next_period_no) AS starts,
         ledgerlock.period_start(s.anchor_at, s.unit, s.every, s.next_period_no + 1) AS ends,
         s.cancel_at
    FROM unnest($5::bigint[], $6::tid[], $7::bigint[], $8::tid[], $9::bigint[])
         AS asked (id, place, user_id, wallet, balance_minor)
   CROSS JOIN LATERAL (SELECT * FROM ledgerlock.subscriptions
                        WHERE ctid = asked.place AND subscription_id = asked.id AND user_id = asked.user_id
                       OFFSET 0) AS s -- OFFSET 0: by its place, also in a plan that was made while the table was empty
   WHERE s.state IN ('active', 'past_due')
     AND s.next_due_at <= (SELECT now FROM instant)
), summed AS (
  SELECT *, cancel_at IS NOT NULL AND starts >= cancel_at AS over,
         balance_minor - sum(CASE WHEN cancel_at IS NULL OR starts < cancel_at THEN amount_minor ELSE 0 END)
           OVER (PARTITION BY user_id ORDER BY next_due_at, subscription_id) AS rest
    FROM due
), decided AS MATERIALIZED ( -- only what the effects need: it is copied row by row
  SELECT place, subscription_id, user_id, wallet, amount_minor, currency, period_no, retries, starts, ends, over,
         NOT over AND rest >= 0 AS captured,
         NOT over AND rest < 0 AND rest + amount_minor >= 0 AS declined,
         over OR rest + amount_minor >= 0 AS is_decided
    FROM summed
), first_try AS (
  INSERT INTO ledgerlock.charges (subscription_id, period_no, user_id, period_start, period_end,
                                  amount_minor, state, tries, fence, worker, charged_at)
  SELECT subscription_id, period_no, user_id, starts, ends, amount_minor,
         CASE WHEN captured THEN 'captured' ELSE 'declined' END, 1, $1, $2::text, (SELECT now FROM instant)
    FROM decided
   WHERE (captured OR declined) AND retries = 0
  RETURNING 1
), later_try AS (
  UPDATE ledgerlock.charges AS c
     SET state = CASE WHEN d.captured THEN 'captured' ELSE 'declined' END, tries = d.retries + 1,
         fence = $1, worker = $2::text, charged_at = (SELECT now FROM instant)
    FROM decided AS d
   CROSS JOIN LATERAL (SELECT ctid AS place FROM ledgerlock.charges
                        WHERE subscription_id = d.subscription_id AND period_no = d.period_no
                       OFFSET 0) AS open -- OFFSET 0: looked up by key for each, whatever the planner knows of the table
   WHERE (d.captured OR d.declined) AND d.retries > 0 AND c.ctid = open.place AND c.state = 'declined'
  RETURNING 1
), moved_on AS (
  UPDATE ledgerlock.subscriptions AS s
     SET next_period_no = s.next_period_no + d.captured::int,
         state = CASE WHEN d.captured THEN 'active'
                      WHEN d.over THEN 'cancelled'
                      WHEN s.retries < cardinality($4::bigint[]) THEN 'past_due'
                      ELSE 'unpaid' END,
         next_due_at = CASE WHEN d.captured THEN d.ends
                            WHEN d.declined AND s.retries < cardinality($4::bigint[])
                              THEN (SELECT now FROM instant) + $4[s.retries + 1] * interval '1 second'
                            ELSE s.next_due_at END,
         retries = CASE WHEN d.captured THEN 0 WHEN d.declined THEN s.retries + 1 ELSE s.retries END
    FROM decided AS d
   WHERE d.is_decided AND s.ctid = d.place AND s.subscription_id = d.subscription_id
     AND s.next_period_no = d.period_no AND s.retries = d.retries AND s.state IN ('active', 'past_due')
  RETURNING 1
), paid AS (
  UPDATE ledgerlock.users AS u
     SET balance_minor = u.balance_minor - p.amount_minor, fence = $1
    FROM (SELECT user_id, wallet, sum(amount_minor)::bigint AS amount_minor
            FROM decided WHERE captured GROUP BY user_id, wallet) AS p
   WHERE u.ctid = p.wallet AND u.user_id = p.user_id AND u.fence <= $1
  RETURNING 1
), booked AS (
  INSERT INTO ledgerlock.transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at)
  SELECT 'charge', subscription_id, period_no, user_id, 'wallet', 'subscription_revenue',
         amount_minor, currency, (SELECT now FROM instant)
    FROM decided
   WHERE captured
  RETURNING 1
), written AS (
  SELECT (SELECT count(*) FROM first_try) + (SELECT count(*) FROM later_try) + (SELECT count(*) FROM moved_on)
       + (SELECT count(*) FROM booked) + (SELECT count(*) FROM paid) AS n
)
SELECT count(*) FILTER (WHERE captured), count(*) FILTER (WHERE declined),
       count(*) FILTER (WHERE over), count(*) FILTER (WHERE NOT is_decided),
       count(*) FILTER (WHERE captured OR declined) + count(*) FILTER (WHERE is_decided)
         + count(*) FILTER (WHERE captured) + count(DISTINCT user_id) FILTER (WHERE captured),
       (SELECT n FROM written)
  FROM decided

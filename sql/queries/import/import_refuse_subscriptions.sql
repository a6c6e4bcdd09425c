-- Takes out subscription lines of a wallet in another currency, and those that contradict an earlier line or a
-- subscription that exists (same customer, plan and anchor). $1 text currency of the file. Locks: none.
-- Serves: importing the same file twice changes nothing.
WITH judged AS (
  SELECT i.line,
         CASE WHEN u.currency <> $1::text
              THEN format('customer "%s" has a wallet in %s, not in %s', i.customer_ref, u.currency, $1::text)
              WHEN s.subscription_id IS NOT NULL
              THEN CASE WHEN (s.amount_minor, s.unit, s.every) <> (i.amount, i.unit, i.every)
                        THEN 'the subscription is already there with other terms' END
              WHEN (f.amount, f.unit, f.every) <> (i.amount, i.unit, i.every)
              THEN format('the subscription stands on line %s with other terms', f.line) END AS reason
    FROM pg_temp.import_subscriptions AS i
    JOIN (SELECT DISTINCT ON (customer_ref, plan, anchor_at) *
            FROM pg_temp.import_subscriptions ORDER BY customer_ref, plan, anchor_at, line) AS f
         USING (customer_ref, plan, anchor_at)
    LEFT JOIN users AS u ON u.external_ref = i.customer_ref
    LEFT JOIN subscriptions AS s
           ON (s.user_id, s.plan, s.anchor_at) = (u.user_id, i.plan, i.anchor_at)
), gone AS (
  DELETE FROM pg_temp.import_subscriptions AS i USING judged AS j
   WHERE i.line = j.line AND j.reason IS NOT NULL
  RETURNING i.line, j.reason, i.raw
)
INSERT INTO pg_temp.import_bad (kind, line, reason, raw) SELECT 'subscriptions', line, reason, raw FROM gone

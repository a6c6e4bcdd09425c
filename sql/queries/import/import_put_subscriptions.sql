-- Makes the subscriptions that are not there yet. $1 text currency, $2 and $3 bigint: lines above $2, up to $3. Columns: new bigint, staged bigint.
-- Locks: the new rows.
WITH made AS (
  INSERT INTO subscriptions
         (user_id, plan, amount_minor, currency, anchor_at, unit, every, next_period_no, next_due_at)
  SELECT u.user_id, i.plan, i.amount, $1::text, i.anchor_at, i.unit, i.every, 0, i.anchor_at
    FROM (SELECT DISTINCT ON (customer_ref, plan, anchor_at) *
            FROM pg_temp.import_subscriptions WHERE line > $2 AND line <= $3
           ORDER BY customer_ref, plan, anchor_at, line) AS i
    JOIN users AS u ON u.external_ref = i.customer_ref
   WHERE NOT EXISTS (SELECT FROM subscriptions AS s
                      WHERE (s.user_id, s.plan, s.anchor_at) = (u.user_id, i.plan, i.anchor_at))
   ORDER BY i.line
  RETURNING 1
)
SELECT count(*), (SELECT count(*) FROM pg_temp.import_subscriptions WHERE line > $2 AND line <= $3) FROM made

-- Makes the customers that are not there yet, with their opening deposit. $1 text currency, $2 text time or null for
-- now, $3 bigint deposit. Columns: new bigint. Locks: the new rows.
-- Serves: a balance is the sum of its entries of ledger.
WITH made AS (
  INSERT INTO users (external_ref, balance_minor, currency)
  SELECT customer_ref, $3::bigint, $1::text
    FROM (SELECT customer_ref FROM pg_temp.import_orders
          UNION SELECT customer_ref FROM pg_temp.import_subscriptions) AS i
   WHERE NOT EXISTS (SELECT FROM users AS u WHERE u.external_ref = i.customer_ref)
   ORDER BY customer_ref
  RETURNING user_id
), paid AS (
  INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, at)
  SELECT user_id, 'deposit', '', $3::bigint, coalesce($2::timestamptz, now())
    FROM made WHERE $3::bigint > 0
)
SELECT count(*) FROM made

-- Makes users 1 to n with a wallet and the deposit that filled it. $1 bigint: n. $2 bigint: deposit.
-- $3 bigint: 0, in the order of their ids, as they signed up; 1, in no order.
-- Columns: none. Locks: the new rows.
WITH made AS (
  INSERT INTO users (user_id, balance_minor, currency)
  SELECT g, $2::bigint, 'USD' FROM generate_series(1, $1::bigint) AS g
   ORDER BY CASE WHEN $3::bigint = 0 THEN g ELSE hashint8extended(g, 5) END
  RETURNING user_id
)
INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, at)
SELECT user_id, 'deposit', '', $2::bigint, now() FROM made

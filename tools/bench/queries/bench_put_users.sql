-- Makes users 1 to n with a wallet and the deposit that filled it. $1 bigint: n. $2 bigint: deposit.
-- $3 bigint: 0, in the order of their ids, as they signed up; 1, in no order.
-- Columns: none. Locks: the new rows.
WITH made AS (
  INSERT INTO users (user_id, balance_minor, currency)
  SELECT g, $2::bigint, 'USD' FROM generate_series(1, $1::bigint) AS g
   ORDER BY CASE WHEN $3::bigint = 0 THEN g ELSE hashint8extended(g, 5) END
  RETURNING user_id
)
INSERT INTO transfers (kind, source, leg, user_id, source_at, debit, credit, amount_minor, currency, moved_at)
SELECT 'deposit', user_id, 0, user_id, now(), 'cash', 'wallet', $2::bigint, 'USD', now() FROM made

-- Makes users 1 to n with a wallet and the deposit that filled it. $1 bigint: n. $2 bigint: deposit.
-- Columns: none. Locks: the new rows.
WITH made AS (
  INSERT INTO ledgerlock.users (user_id, balance_minor, currency)
  SELECT g, $2::bigint, 'USD' FROM generate_series(1, $1::bigint) AS g
  RETURNING user_id
)
INSERT INTO ledgerlock.transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at)
SELECT 'deposit', user_id, 1, user_id, 'cash', 'wallet', $2::bigint, 'USD', now() FROM made

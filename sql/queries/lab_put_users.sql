-- Users with a wallet that is large enough, and their deposits. $1 bigint: first. $2 bigint: last.
-- Columns: none. Locks: the new rows.
WITH made AS (
  INSERT INTO ledgerlock.users (user_id, external_ref, balance_minor, currency)
  SELECT g, 'lab-' || g, 1000000, 'USD' FROM generate_series($1::bigint, $2::bigint) AS g
  RETURNING user_id
)
INSERT INTO ledgerlock.transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at)
SELECT 'deposit', user_id, 1, user_id, 'cash', 'wallet', 1000000, 'USD', '2024-01-01Z' FROM made

-- Users with a wallet that is large enough, and their deposits. $1 bigint: first. $2 bigint: last.
-- Columns: none. Locks: the new rows.
WITH made AS (
  INSERT INTO users (user_id, external_ref, balance_minor, currency)
  SELECT g, 'lab-' || g, 1000000, 'USD' FROM generate_series($1::bigint, $2::bigint) AS g
  RETURNING user_id
)
INSERT INTO transfers (kind, source, leg, user_id, source_at, debit, credit, amount_minor, currency, moved_at)
SELECT 'deposit', user_id, 0, user_id, now(), 'cash', 'wallet', 1000000, 'USD', now() FROM made

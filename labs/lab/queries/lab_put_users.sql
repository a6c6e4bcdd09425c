-- Users with a wallet that is large enough, and their deposits. $1 bigint: first. $2 bigint: last.
-- Columns: none. Locks: the new rows.
WITH made AS (
  INSERT INTO users (user_id, external_ref, balance_minor, currency)
  SELECT g, 'lab-' || g, 1000000, 'USD' FROM generate_series($1::bigint, $2::bigint) AS g
  RETURNING user_id
)
INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, at)
SELECT user_id, 'deposit', '', 1000000, now() FROM made

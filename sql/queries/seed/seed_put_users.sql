-- Makes users with their opening deposits. $1 and $2 bigint: the users above $1, up to $2. Locks: the new rows.
-- Serves: a balance is the sum of its entries of ledger.
WITH made AS (
  INSERT INTO users (user_id, external_ref, balance_minor, currency)
  SELECT w.base + u.user_id, 'user-' || lpad(u.user_id::text, greatest(length(u.user_id::text), 7), '0'), u.deposit_minor, w.currency
    FROM pg_temp.seed_users AS u, pg_temp.seed_of AS w
   WHERE u.user_id > $1 AND u.user_id <= $2
   ORDER BY u.user_id
  RETURNING user_id, balance_minor
)
INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, at)
SELECT made.user_id, 'deposit', '', made.balance_minor, w.at FROM made, pg_temp.seed_of AS w WHERE made.balance_minor > 0

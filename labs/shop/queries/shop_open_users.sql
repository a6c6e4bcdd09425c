-- The customers of a season with full wallets, on both sides; those that are there stay. $1 bigint: how many.
-- Columns: none. Locks: the rows.
WITH made AS MATERIALIZED (
  SELECT create_user('shop-' || g, 'USD') AS user_id FROM generate_series(1, $1::bigint) AS g
), filled AS MATERIALIZED (
  SELECT user_id, deposit(user_id, 'USD', 100000000, 'opening') AS balance FROM made ORDER BY user_id
)
INSERT INTO ledgerlock_plain.wallets (user_id, balance_minor)
SELECT user_id, balance FROM filled ON CONFLICT DO NOTHING

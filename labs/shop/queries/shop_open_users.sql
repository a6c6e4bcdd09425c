-- The customers of a season with full wallets, on both sides, and some with cards of the stand-in gateway; those that are there stay.
-- $1 bigint: how many. $2 bigint: how many of a hundred pay by card. Columns: none. Locks: the rows.
WITH made AS MATERIALIZED (
  SELECT g, create_user('shop-' || g, 'USD') AS user_id FROM generate_series(1, $1::bigint) AS g
), filled AS MATERIALIZED (
  SELECT g, user_id, deposit(user_id, 'USD', 100000000, 'opening') AS balance FROM made ORDER BY user_id
), card AS MATERIALIZED (
  SELECT user_id, pay_with(user_id, 'card', 'cus_shop_' || g, 'pm_shop_' || g) AS is_new FROM filled
   WHERE g * $2::bigint / 100 > (g - 1) * $2::bigint / 100
)
INSERT INTO ledgerlock_plain.wallets (user_id, balance_minor, by_card)
SELECT user_id, balance, is_new IS NOT NULL FROM filled LEFT JOIN card USING (user_id) ON CONFLICT DO NOTHING

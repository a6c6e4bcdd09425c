-- The compressed clock: no period of the schema is shorter than a day, and nobody moves the clock of a database. So each
-- subscription is to a plan of five days ago: five of its periods are due at once, and the next one in 23 hours.
-- $1 bigint: how many subscriptions. $2 bigint: users. $3 text: what no other call gives as part of the keys. Columns: none.
-- Locks: the users.
WITH wanted AS MATERIALIZED (
  SELECT g, 'shop-' || 1 + floor(random() * $2::bigint)::bigint AS name FROM generate_series(1, $1::bigint) AS g
), made AS MATERIALIZED (
  SELECT u.user_id, subscribe(u.user_id, 'plan-' || w.g, 500, 'USD', 'day', 1, now() - interval '4 days 1 hour', 0,
                              $3::text || '-' || w.g) AS subscription_id
    FROM wanted AS w JOIN users AS u ON u.external_ref = w.name ORDER BY u.user_id
)
INSERT INTO ledgerlock_plain.items (kind, item_id, user_id, sku_id, qty, amount_minor, periods)
SELECT 'subscription', subscription_id, user_id, 0, 0, 500, 5 FROM made

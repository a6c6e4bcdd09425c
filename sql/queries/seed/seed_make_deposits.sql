-- Adds up what each user will owe, and makes the deposits up: 95 of a hundred users can pay everything. After seed_put_stock.
-- Columns: periods due bigint. Locks: none.
WITH due AS MATERIALIZED (
  SELECT user_id, sum(begun * amount_minor) AS minor, sum(begun) AS periods FROM pg_temp.seed_subscriptions GROUP BY user_id
), asked AS (
  SELECT l.user_id, sum(l.qty * s.unit_price_minor) AS minor
    FROM pg_temp.seed_of AS w, pg_temp.seed_lines AS l, stock AS s WHERE s.sku_id = w.base + l.sku_id GROUP BY l.user_id
), made AS (
  INSERT INTO pg_temp.seed_users (user_id, deposit_minor)
  SELECT n, ceil(CASE WHEN pg_temp.draw(w.seed, n, 50, 100) < 5 THEN owed.minor * pg_temp.draw(w.seed, n, 51, 61) / 100
                      ELSE owed.minor * (100 + pg_temp.draw(w.seed, n, 51, 21)) / 100 + 5000 END / 100) * 100
    FROM pg_temp.seed_of AS w, generate_series(1, w.users) AS n
    LEFT JOIN due ON due.user_id = n
    LEFT JOIN asked ON asked.user_id = n,
         LATERAL (SELECT coalesce(due.minor, 0) + coalesce(asked.minor, 0) AS minor) AS owed
)
SELECT coalesce(sum(periods), 0)::bigint FROM due

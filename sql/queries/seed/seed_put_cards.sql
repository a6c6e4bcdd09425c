-- Lets users pay by card, as pay_with would: so many of a hundred. The stand-in gateway declines ten of a hundred of these customers, by the
-- begin of their names. $1 and $2 bigint: of the users above $1, up to $2. Columns: cards bigint. Locks: the rows of those users.
-- Serves: the card of a user is that of the last event about it.
WITH card AS MATERIALIZED (
  SELECT w.base + n AS user_id, 'pm_seed_' || n AS method,
         (ARRAY['cus_seed_', 'cus_declines_soft_', 'cus_declines_twice_then_pays_', 'cus_declines_hard_'])
           [width_bucket(pg_temp.draw(w.seed, n, 61, 100), ARRAY[0, 90, 94, 97]::bigint[])] || n AS customer
    FROM pg_temp.seed_of AS w, generate_series($1::bigint + 1, $2) AS n
   WHERE pg_temp.draw(w.seed, n, 60, 100) < w.cards
), paying AS (
  UPDATE users AS u SET card_customer = c.customer, card_method = c.method FROM card AS c WHERE u.user_id = c.user_id
), told AS (
  INSERT INTO events (event, user_id, reason)
  SELECT 'pays_with', user_id, customer || ' ' || method FROM card ORDER BY user_id
)
SELECT count(*) FROM card

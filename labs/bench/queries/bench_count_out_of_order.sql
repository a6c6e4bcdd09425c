-- Orders whose outcome is another than if all were served one after the other in the order of placing: fulfilled though
-- too little was left by those fulfilled before them, or rejected though there was enough. Columns: how many. Locks: none.
WITH lines AS (
  SELECT l.order_id, l.qty > s.initial_qty - coalesce(sum(l.qty) FILTER (WHERE o.state = 'fulfilled') OVER (
           PARTITION BY l.sku_id ORDER BY o.placed_at, o.order_id
           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS is_short
    FROM (SELECT order_id, sku_id, sum(qty) AS qty FROM order_lines GROUP BY order_id, sku_id) AS l
    JOIN orders AS o USING (order_id)
    JOIN stock AS s USING (sku_id)
), short AS (
  SELECT order_id, bool_or(is_short) AS is_short FROM lines GROUP BY order_id
), wallets AS (
  SELECT o.order_id, o.state, o.total_minor > u.balance_minor + coalesce(sum(o.total_minor) FILTER (WHERE o.state = 'fulfilled')
           OVER (PARTITION BY o.user_id ORDER BY o.placed_at DESC, o.order_id DESC), 0) AS is_dear
    FROM orders AS o
    JOIN users AS u USING (user_id)
)
SELECT count(*)
  FROM wallets JOIN short USING (order_id)
 WHERE state IN ('fulfilled', 'rejected') AND (state = 'fulfilled') = (is_short OR is_dear)

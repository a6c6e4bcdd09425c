-- An order has a time of its decision exactly when it is decided, and a batch decides nothing before it is placed.
SELECT format('order %s', order_id) AS what,
       format('%s, placed %s, decided %s', state, placed_at, coalesce(decided_at::text, 'never')) AS detail
  FROM orders
 WHERE (state IN ('fulfilled', 'rejected')) <> (decided_at IS NOT NULL)
    OR (decided_at < placed_at AND fence <> 0)
 ORDER BY order_id;

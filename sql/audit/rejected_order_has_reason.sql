-- A rejected order says why and names the SKUs it failed for; no other order has a reason.
SELECT format('order %s', order_id) AS what,
       format('%s, reason %s, skus %s', state, coalesce(reason, 'none'), coalesce(skus::text, 'none')) AS detail
  FROM orders
 WHERE (state = 'rejected') <> (reason IS NOT NULL)
    OR (reason IN ('out_of_stock', 'unknown_sku') AND coalesce(cardinality(skus), 0) = 0)
 ORDER BY order_id;

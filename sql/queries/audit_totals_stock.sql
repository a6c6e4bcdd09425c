-- audit_totals_stock: units before and after. Columns: skus, initial, received, before, sold, left, oversold.
-- oversold counts the units below zero of each SKU, by its movements or by its row, whichever is worse: it does
-- not rest on the CHECK of on_hand. Sums as text: 64 bits may not hold them. Locks: none.
SELECT count(*)::text AS skus,
       coalesce(sum(initial_qty), 0)::text AS initial,
       coalesce(sum(received), 0)::text AS received,
       coalesce(sum(initial_qty + coalesce(received, 0)), 0)::text AS before,
       coalesce(sum(sold), 0)::text AS sold,
       coalesce(sum(on_hand), 0)::text AS "left",
       coalesce(sum(greatest(coalesce(sold, 0) - initial_qty - coalesce(received, 0), -on_hand, 0)), 0)::text
         AS oversold
  FROM ledgerlock.stock
  LEFT JOIN (SELECT sku_id, sum(qty) FILTER (WHERE kind = 'receive') AS received,
                    -sum(qty) FILTER (WHERE kind = 'sale') AS sold
               FROM ledgerlock.stock_movements GROUP BY sku_id) AS moved USING (sku_id);

-- audit_totals_stock: units before and after. Columns: skus, initial, received, returned, adjusted, before, sold, left, oversold.
-- oversold counts the units below zero of each SKU, by its movements or by its row, whichever is worse: it does
-- not rely on the CHECK of on_hand. Sums as text: 64 bits may not hold them. Locks: none.
SELECT count(*)::text AS skus,
       coalesce(sum(initial_qty), 0)::text AS initial,
       coalesce(sum(received), 0)::text AS received,
       coalesce(sum(returned), 0)::text AS returned,
       coalesce(sum(adjusted), 0)::text AS adjusted,
       coalesce(sum(initial_qty + coalesce(received + returned + adjusted, 0)), 0)::text AS before,
       coalesce(sum(sold), 0)::text AS sold,
       coalesce(sum(on_hand), 0)::text AS "left",
       coalesce(sum(greatest(coalesce(sold, 0) - initial_qty - coalesce(received + returned + adjusted, 0), -on_hand, 0)), 0)::text
         AS oversold
  FROM stock
  LEFT JOIN (SELECT sku_id, sum(received) AS received, sum(returned) AS returned, sum(adjusted) AS adjusted,
                    sum(sold) AS sold
               FROM (SELECT sku_id, CASE kind WHEN 'delivery' THEN qty ELSE 0 END AS received,
                            CASE kind WHEN 'return' THEN qty ELSE 0 END AS returned,
                            CASE kind WHEN 'adjustment' THEN qty ELSE 0 END AS adjusted,
                            CASE kind WHEN 'sale' THEN -qty ELSE 0 END AS sold
                       FROM open_stock_ledger
                      UNION ALL SELECT sku_id, received, returned, adjusted, sold FROM sealed_stock) AS all_months
              GROUP BY sku_id) AS moved USING (sku_id);

-- audit_totals_stock: units before and after. Columns: skus, initial, received, returned, adjusted, before, sold, left, held, oversold.
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
       coalesce(sum(held), 0)::text AS held,
       coalesce(sum(greatest(coalesce(sold, 0) - initial_qty - coalesce(received + returned + adjusted, 0), -on_hand, 0)), 0)::text
         AS oversold
  FROM stock
  LEFT JOIN (SELECT sku_id, coalesce(sum(qty) FILTER (WHERE kind = 'delivery'), 0) AS received,
                    coalesce(sum(qty) FILTER (WHERE kind = 'return'), 0) AS returned,
                    coalesce(sum(qty) FILTER (WHERE kind = 'adjustment'), 0) AS adjusted,
                    coalesce(-sum(qty) FILTER (WHERE kind = 'sale'), 0) AS sold
               FROM (SELECT sku_id, kind, sum(qty) AS qty FROM open_stock_ledger GROUP BY sku_id, kind
                      UNION ALL
                     SELECT sku_id, m.kind, m.qty
                       FROM sealed_stock, LATERAL (VALUES ('delivery', received), ('return', returned), ('adjustment', adjusted), ('sale', -sold)) AS m (kind, qty)
                    ) AS all_months
              GROUP BY sku_id) AS moved USING (sku_id);

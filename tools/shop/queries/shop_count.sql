-- Counts the outcome on the unguarded side: charges above the first of each period and order, and units sold above those received.
-- Columns: charges, charged_twice, oversold. Locks: the row of the figures.
UPDATE ledgerlock_plain.figures
   SET charges = c.charges, charged_twice = c.twice, oversold = s.oversold
  FROM (SELECT coalesce(sum(n), 0)::bigint AS charges, coalesce(sum(n - 1), 0)::bigint AS twice
          FROM (SELECT count(*) AS n FROM ledgerlock_plain.charges GROUP BY kind, item_id, period_no) AS counted) AS c,
       (SELECT coalesce(sum(s.oversold + greatest(coalesce(n.sold, 0) - s.received, 0)), 0)::bigint AS oversold
          FROM ledgerlock_plain.stock AS s
          LEFT JOIN (SELECT sku_id, sum(qty)::bigint AS sold FROM ledgerlock_plain.charges WHERE kind = 'order' GROUP BY sku_id) AS n
            ON n.sku_id = s.sku_id) AS s
RETURNING figures.charges, figures.charged_twice, figures.oversold

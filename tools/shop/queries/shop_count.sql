-- Counts the outcome on the unguarded side as check_newest does on the other: charges beyond the first of each period and order,
-- units sold above those received, and SKUs of which as many are not left. A wallet is changed by a subtraction, beside its charge, so it
-- is always the sum of its rows. Columns: charges, charged_twice, oversold, wrong_totals. Locks: the row of the figures.
UPDATE ledgerlock_plain.figures
   SET charges = c.charges, charged_twice = c.twice, oversold = s.oversold, wrong_totals = s.wrong
  FROM (SELECT coalesce(sum(n), 0)::bigint AS charges, coalesce(sum(n - 1), 0)::bigint AS twice
          FROM (SELECT count(*) AS n FROM ledgerlock_plain.charges GROUP BY kind, item_id, period_no) AS counted) AS c,
       (SELECT coalesce(sum(s.oversold + greatest(coalesce(n.sold, 0) - s.received, 0)), 0)::bigint AS oversold,
               count(*) FILTER (WHERE s.on_hand <> s.received - coalesce(n.sold, 0)) AS wrong
          FROM ledgerlock_plain.stock AS s
          LEFT JOIN (SELECT sku_id, sum(qty)::bigint AS sold FROM ledgerlock_plain.charges WHERE kind = 'order' GROUP BY sku_id) AS n
            ON n.sku_id = s.sku_id) AS s
RETURNING figures.charges, figures.charged_twice, figures.oversold, figures.wrong_totals

-- The end of the items. Columns: periods charged twice, periods missed, units sold that were not there,
-- periods charged. Locks: none.
SELECT (SELECT count(*) - count(DISTINCT (item_id, period_no)) FROM ledgerlock_lab.lab_charges),
       (SELECT coalesce(sum(periods), 0)::bigint FROM ledgerlock_lab.lab_items)
         - (SELECT count(DISTINCT (item_id, period_no)) FROM ledgerlock_lab.lab_charges),
       (SELECT coalesce(sum(greatest(n - units, 0)), 0)::bigint
          FROM ledgerlock_lab.lab_items
          JOIN (SELECT item_id, count(*) AS n FROM ledgerlock_lab.lab_sales GROUP BY item_id) AS s USING (item_id)),
       (SELECT count(*) FROM ledgerlock_lab.lab_charges)

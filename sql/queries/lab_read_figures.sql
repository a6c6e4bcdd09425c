-- What became of the boxes. Columns: periods charged twice, periods missed, units sold that were not there,
-- periods charged. Locks: none.
SELECT (SELECT count(*) - count(DISTINCT (box_id, period_no)) FROM ledgerlock_lab.lab_charges),
       (SELECT coalesce(sum(periods), 0)::bigint FROM ledgerlock_lab.lab_boxes)
         - (SELECT count(DISTINCT (box_id, period_no)) FROM ledgerlock_lab.lab_charges),
       (SELECT coalesce(sum(greatest(n - units, 0)), 0)::bigint
          FROM ledgerlock_lab.lab_boxes
          JOIN (SELECT box_id, count(*) AS n FROM ledgerlock_lab.lab_sales GROUP BY box_id) AS s USING (box_id)),
       (SELECT count(*) FROM ledgerlock_lab.lab_charges)

-- audit_totals_twice: how often a period was charged again, counted from the rows without trust in any constraint.
-- Column: charged_twice: captured charges, or transfers for one, beyond the first of a period. Locks: none.
-- The keys are grouped first, from their index alone; the state and kind of a row are read only for keys found twice.
WITH charge AS MATERIALIZED (
  SELECT subscription_id, period_no FROM open_charges
   GROUP BY subscription_id, period_no HAVING count(*) > 1
), transfer AS MATERIALIZED (
  SELECT source AS subscription_id, leg AS period_no, count(*) - 1 AS again FROM open_transfers
   GROUP BY source, leg, kind HAVING count(*) > 1 AND kind = 'charge'
)
SELECT coalesce(sum(greatest(c.again, t.again)), 0)::int8 AS charged_twice
  FROM (SELECT subscription_id, period_no, count(*) - 1 AS again
          FROM open_charges JOIN charge USING (subscription_id, period_no)
         WHERE state = 'captured' GROUP BY subscription_id, period_no HAVING count(*) > 1) AS c
  FULL JOIN transfer AS t USING (subscription_id, period_no);

-- audit_totals_twice: how often a period was charged again, counted from the rows without trust in any constraint.
-- Column: charged_twice: captured and paid charges beyond the first of a period. Locks: none.
-- The keys are grouped first, from their index alone; the state of a row is read only for keys found twice.
WITH twice AS MATERIALIZED (
  SELECT subscription_id, period_no FROM open_charges
   GROUP BY subscription_id, period_no HAVING count(*) > 1
)
SELECT coalesce(sum(again), 0)::int8 AS charged_twice
  FROM (SELECT count(*) - 1 AS again
          FROM open_charges JOIN twice USING (subscription_id, period_no)
         WHERE state IN ('captured', 'paid') GROUP BY subscription_id, period_no HAVING count(*) > 1) AS charged;

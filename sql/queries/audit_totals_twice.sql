-- audit_totals_twice: how often a period was charged again, counted from the rows whatever constraints say.
-- Column: charged_twice: captured charges, or transfers for one, beyond the first of a period. Locks: none.
SELECT coalesce(sum(greatest(c.again, t.again)), 0)::int8 AS charged_twice
  FROM (SELECT subscription_id, period_no, count(*) - 1 AS again FROM ledgerlock.charges
         WHERE state = 'captured' GROUP BY subscription_id, period_no HAVING count(*) > 1) AS c
  FULL JOIN (SELECT source AS subscription_id, leg AS period_no, count(*) - 1 AS again
               FROM ledgerlock.transfers WHERE kind = 'charge'
              GROUP BY source, leg HAVING count(*) > 1) AS t USING (subscription_id, period_no);

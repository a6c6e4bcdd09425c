-- No charge, payment or deposit moved money more than once.
WITH twice AS MATERIALIZED ( -- in the order of the key's index, so that no sort and no hash table is needed
  SELECT kind, source, leg, count(*) AS n
    FROM open_transfers
   GROUP BY source, leg, kind
  HAVING count(*) > 1)
SELECT format('%s %s leg %s', kind, source, leg) AS what, format('%s transfers', n) AS detail
  FROM twice
 ORDER BY kind, source, leg;

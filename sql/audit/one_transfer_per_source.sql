-- No charge, payment or deposit moved money more than once.
SELECT format('%s %s leg %s', kind, source, leg) AS what,
       format('%s transfers', count(*)) AS detail
  FROM ledgerlock.transfers
 GROUP BY kind, source, leg
HAVING count(*) > 1
 ORDER BY kind, source, leg;

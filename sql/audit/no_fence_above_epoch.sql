-- No fence is above the tokens that the current epoch can mint.
-- A row with such a fence would refuse every worker for ever.
WITH above AS MATERIALIZED (
  SELECT 'user' AS kind, user_id::text AS name, fence
    FROM ledgerlock.users
   WHERE fence >= (SELECT (epoch + 1) * 1099511627776 FROM ledgerlock.lock_epoch)
   UNION ALL
  SELECT 'sku', sku, fence
    FROM ledgerlock.stock
   WHERE fence >= (SELECT (epoch + 1) * 1099511627776 FROM ledgerlock.lock_epoch))
SELECT format('%s %s', kind, name) AS what,
       format('fence %s, epoch %s', fence, (SELECT epoch FROM ledgerlock.lock_epoch)) AS detail
  FROM above
 ORDER BY what;

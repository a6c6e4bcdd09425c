-- No fence is above the tokens that the current epoch can mint.
-- A row with such a fence would refuse every worker for ever.
SELECT row.what, format('fence %s, epoch %s', row.fence, e.epoch) AS detail
  FROM (SELECT format('user %s', user_id) AS what, fence FROM ledgerlock.users
        UNION ALL
        SELECT format('sku %s', sku), fence FROM ledgerlock.stock) AS row
  JOIN ledgerlock.lock_epoch AS e ON row.fence >= (e.epoch + 1) * 1099511627776
 ORDER BY row.what;

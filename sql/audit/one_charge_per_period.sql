-- No period of a subscription has more than one charge.
SELECT format('subscription %s period %s', subscription_id, period_no) AS what,
       format('%s charges', count(*)) AS detail
  FROM open_charges
 GROUP BY subscription_id, period_no
HAVING count(*) > 1
 ORDER BY subscription_id, period_no;

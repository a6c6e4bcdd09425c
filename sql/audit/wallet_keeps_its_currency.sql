-- Every transfer is in the currency of its wallet.
SELECT format('%s %s/%s', t.kind, t.source, t.leg) AS what,
       format('of user %s in %s, wallet in %s', t.user_id, t.currency, u.currency) AS detail
  FROM ledgerlock.transfers AS t
  JOIN ledgerlock.users AS u USING (user_id)
 WHERE t.currency <> u.currency
 ORDER BY t.kind, t.source, t.leg;

-- Every transfer is in the currency of its wallet.
SELECT format('transfer %s', t.transfer_id) AS what,
       format('%s of user %s in %s, wallet in %s', t.kind, t.user_id, t.currency, u.currency) AS detail
  FROM ledgerlock.transfers AS t
  JOIN ledgerlock.users AS u USING (user_id)
 WHERE t.currency <> u.currency
 ORDER BY t.transfer_id;

-- Every correction is in the currency of its wallet.
-- All other entries of ledger have the currency of a row that a foreign key binds to the wallet: an order, a subscription, the user.
SELECT format('correction %s', c.correction_id) AS what,
       format('of user %s in %s, wallet in %s', user_id, c.currency, u.currency) AS detail
  FROM corrections AS c
  JOIN users AS u USING (user_id)
 WHERE c.at >= (SELECT first_open()) AND c.currency <> u.currency
 ORDER BY c.correction_id;

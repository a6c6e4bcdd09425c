-- The card of a user is that of the last event about it; without one the user pays from the wallet.
SELECT format('user %s', user_id) AS what, format('%s %s; last event: %s', card_customer, card_method, coalesce(e.reason, 'none')) AS detail
  FROM (SELECT user_id, card_customer, card_method FROM users WHERE card_customer IS NOT NULL OR card_method IS NOT NULL) AS u
  FULL JOIN (SELECT DISTINCT ON (user_id) user_id, reason FROM events WHERE event = 'pays_with'
              ORDER BY user_id, event_id DESC) AS e USING (user_id)
 WHERE nullif(concat_ws(' ', card_customer, card_method), '') IS DISTINCT FROM e.reason
 ORDER BY user_id;

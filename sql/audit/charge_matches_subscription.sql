-- Every charge has its subscription, that subscription's user and its amount.
WITH strange AS MATERIALIZED (
  SELECT c.subscription_id, c.period_no, c.user_id, c.amount_minor,
         s.subscription_id AS found_id, s.user_id AS of_user, s.amount_minor AS price_minor
    FROM ledgerlock.charges AS c
    LEFT JOIN ledgerlock.subscriptions AS s USING (subscription_id)
   WHERE s.subscription_id IS NULL OR c.user_id <> s.user_id OR c.amount_minor <> s.amount_minor)
SELECT format('subscription %s period %s', subscription_id, period_no) AS what,
       CASE WHEN found_id IS NULL THEN 'no such subscription'
            ELSE format('user %s amount %s, subscription says user %s amount %s',
                        user_id, amount_minor, of_user, price_minor) END AS detail
  FROM strange
 ORDER BY subscription_id, period_no;

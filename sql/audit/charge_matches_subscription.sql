-- Every charge has its subscription, that subscription's user and the amount of its terms in that period.
WITH term AS (
  SELECT DISTINCT ON (subscription_id, from_period) subscription_id, from_period, amount_minor
    FROM subscription_terms ORDER BY subscription_id, from_period, terms_id DESC
), span AS (
  SELECT *, lead(from_period, 1, 9223372036854775807) OVER (PARTITION BY subscription_id ORDER BY from_period) AS until_period
    FROM term
), strange AS MATERIALIZED (
  SELECT c.subscription_id, c.period_no, c.user_id, c.amount_minor,
         s.subscription_id AS found_id, s.user_id AS of_user, coalesce(t.amount_minor, s.amount_minor) AS price_minor
    FROM open_charges AS c
    LEFT JOIN subscriptions AS s USING (subscription_id)
    LEFT JOIN span AS t
      ON t.subscription_id = c.subscription_id AND c.period_no >= t.from_period AND c.period_no < t.until_period
   WHERE s.subscription_id IS NULL OR c.user_id <> s.user_id OR c.amount_minor <> coalesce(t.amount_minor, s.amount_minor))
SELECT format('subscription %s period %s', subscription_id, period_no) AS what,
       CASE WHEN found_id IS NULL THEN 'no such subscription'
            ELSE format('user %s amount %s, subscription says user %s amount %s',
                        user_id, amount_minor, of_user, price_minor) END AS detail
  FROM strange
 ORDER BY subscription_id, period_no;

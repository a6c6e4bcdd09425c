-- A subscription names the first period that a decision about its terms is for.
WITH first AS (
  SELECT subscription_id, min(from_period) AS from_period FROM subscription_terms GROUP BY subscription_id
)
SELECT format('subscription %s', subscription_id) AS what,
       format('terms from period %s, subscription says %s', coalesce(f.from_period::text, 'none'), coalesce(terms_from_no::text, 'none')) AS detail
  FROM (SELECT subscription_id, terms_from_no FROM subscriptions WHERE terms_from_no IS NOT NULL) AS s
  FULL JOIN first AS f USING (subscription_id)
 WHERE s.terms_from_no IS DISTINCT FROM f.from_period
 ORDER BY subscription_id;

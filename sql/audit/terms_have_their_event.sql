-- Every decision about terms has its event, by the same role, and the subscription names the first period that one is for.
WITH decision AS (
  SELECT subscription_id, from_period, worker, row_number() OVER (PARTITION BY subscription_id, from_period ORDER BY terms_id) AS nth
    FROM subscription_terms
), told AS (
  SELECT subscription_id, from_period, worker, row_number() OVER (PARTITION BY subscription_id, from_period ORDER BY event_id) AS nth
    FROM events WHERE event = 'terms'
), first AS (
  SELECT subscription_id, min(from_period) AS from_period FROM subscription_terms GROUP BY subscription_id
)
SELECT format('subscription %s period %s', subscription_id, from_period) AS what,
       format('decision %s by %s, event by %s', nth, coalesce(d.worker, 'nobody'), coalesce(t.worker, 'nobody')) AS detail
  FROM decision AS d FULL JOIN told AS t USING (subscription_id, from_period, nth)
 WHERE d.worker IS DISTINCT FROM t.worker
 UNION ALL
SELECT format('subscription %s', subscription_id),
       format('terms from period %s, subscription says %s', coalesce(f.from_period::text, 'none'), coalesce(terms_from_no::text, 'none'))
  FROM (SELECT subscription_id, terms_from_no FROM subscriptions WHERE terms_from_no IS NOT NULL) AS s
  FULL JOIN first AS f USING (subscription_id)
 WHERE s.terms_from_no IS DISTINCT FROM f.from_period
 ORDER BY what;

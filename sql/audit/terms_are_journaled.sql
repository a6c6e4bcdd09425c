-- The terms of a subscription from a period on are those of the journal, and the subscription names the first such period.
WITH set AS (
  SELECT subscription_id, from_period, row_number() OVER (PARTITION BY subscription_id, from_period ORDER BY terms_id) AS nth,
         plan, quantity, unit_minor, worker
    FROM subscription_terms
), entry AS (
  SELECT subscription_id, from_period, row_number() OVER (PARTITION BY subscription_id, from_period ORDER BY entry_id) AS nth,
         plan, quantity, amount_minor, worker, entry_id
    FROM subscription_journal WHERE event = 'terms'
), first AS (
  SELECT subscription_id, min(from_period) AS from_period FROM subscription_terms GROUP BY subscription_id
)
SELECT format('subscription %s period %s', subscription_id, from_period) AS what,
       format('%s units of %s at %s; journal: %s of %s at %s', s.quantity, coalesce(s.plan, 'nothing'), s.unit_minor,
              e.quantity, coalesce(e.plan, 'nothing'), e.amount_minor) AS detail
  FROM set AS s FULL JOIN entry AS e USING (subscription_id, from_period, nth)
 WHERE s.worker IS NULL OR e.entry_id IS NULL
    OR (s.plan, s.quantity, s.unit_minor, s.worker) IS DISTINCT FROM (e.plan, e.quantity, e.amount_minor, e.worker)
 UNION ALL
SELECT format('subscription %s', subscription_id),
       format('terms from period %s, subscription says %s', coalesce(f.from_period::text, 'none'), coalesce(terms_from_no::text, 'none'))
  FROM (SELECT subscription_id, terms_from_no FROM subscriptions WHERE terms_from_no IS NOT NULL) AS s
  FULL JOIN first AS f USING (subscription_id)
 WHERE s.terms_from_no IS DISTINCT FROM f.from_period
 ORDER BY what;

-- Every proration is of a captured charge, at its days and the amount before, and has the terms of the next period.
-- The period may have begun in a closed month; no charge before the oldest such period is read.
WITH oldest AS (
  SELECT min(period_start(s.anchor_at, s.unit, s.every, p.period_no)) AS at
    FROM prorations AS p JOIN subscriptions AS s USING (subscription_id)
   WHERE p.at >= (SELECT first_open())
), change AS (
  SELECT p.*, s.trial_periods, c.state, c.user_id AS of_user, c.period_start, c.period_end,
         lag(p.new_minor, 1, c.amount_minor) OVER (PARTITION BY subscription_id, period_no ORDER BY proration_id) AS before_minor,
         lag(p.at) OVER (PARTITION BY subscription_id, period_no ORDER BY proration_id) AS before_at
    FROM prorations AS p
    LEFT JOIN subscriptions AS s USING (subscription_id)
    LEFT JOIN (SELECT * FROM charges WHERE period_start >= (SELECT at FROM oldest)) AS c USING (subscription_id, period_no)
)
SELECT format('proration %s', proration_id) AS what,
       format('%s for %s of %s days from %s to %s at %s in subscription %s period %s (%s)', p.amount_minor, p.days_left,
              p.days, p.old_minor, p.new_minor, p.at, p.subscription_id, p.period_no, coalesce(p.state, 'no charge')) AS detail
  FROM (SELECT * FROM change WHERE at >= (SELECT first_open())) AS p
 WHERE (p.state, p.user_id, p.new_minor::numeric) IS DISTINCT FROM ('captured', p.of_user, p.quantity * p.unit_minor::numeric)
    OR NOT (p.old_minor = p.before_minor -- or less, of a period of which something was refunded, or nothing, of one that is free
            OR (p.amount_minor <= 0 AND p.old_minor BETWEEN p.new_minor AND p.before_minor
                AND EXISTS (SELECT FROM corrections AS r
                             WHERE r.recorded_at <= p.recorded_at
                               AND ((r.of_kind, r.of_source, r.of_leg) = ('charge', p.subscription_id, p.period_no)
                                    OR (r.of_kind = 'proration'
                                        AND r.of_source IN (SELECT q.proration_id FROM prorations AS q
                                                             WHERE q.subscription_id = p.subscription_id AND q.period_no = p.period_no)))))
            OR (p.amount_minor = 0 AND p.old_minor = p.new_minor AND p.period_no < p.trial_periods))
    OR p.at < p.before_at OR p.at < p.period_start OR p.at >= p.period_end
    OR p.days * interval '1 day' <> p.period_end - p.period_start
    OR p.days_left <> floor(extract(epoch FROM p.period_end - p.at) / 86400)
    OR p.amount_minor <> prorated(p.old_minor, p.new_minor, p.days_left, p.days)
    OR NOT EXISTS (SELECT FROM subscription_terms AS s
                    WHERE s.subscription_id = p.subscription_id AND s.from_period = p.period_no + 1
                      AND (s.plan, s.quantity, s.unit_minor) = (p.plan, p.quantity, p.unit_minor))
 ORDER BY proration_id;

-- Every proration is of a captured charge, at its days and the amount before, has the terms of the next period, and its transfer.
-- The period may have begun in a closed month; no charge before the oldest such period is read.
WITH oldest AS (
  SELECT min(period_start(s.anchor_at, s.unit, s.every, p.period_no)) AS at
    FROM prorations AS p JOIN subscriptions AS s USING (subscription_id)
   WHERE p.at >= (SELECT first_open())
), change AS (
  SELECT p.*, c.state, c.user_id AS of_user, c.period_start, c.period_end,
         lag(p.new_minor, 1, c.amount_minor) OVER (PARTITION BY subscription_id, period_no ORDER BY proration_id) AS before_minor
    FROM prorations AS p
    LEFT JOIN (SELECT * FROM charges WHERE period_start >= (SELECT at FROM oldest)) AS c USING (subscription_id, period_no)
), moved AS (
  SELECT source AS proration_id, leg, user_id, moved_at, source_at, CASE debit WHEN 'wallet' THEN amount_minor ELSE -amount_minor END AS amount_minor
    FROM open_transfers WHERE kind = 'proration'
)
SELECT format('proration %s', proration_id) AS what,
       format('%s for %s of %s days from %s to %s at %s in subscription %s period %s (%s); transfer: %s', p.amount_minor, p.days_left,
              p.days, p.old_minor, p.new_minor, p.at, p.subscription_id, p.period_no, coalesce(p.state, 'no charge'),
              coalesce(t.amount_minor::text, 'none')) AS detail
  FROM (SELECT * FROM change WHERE at >= (SELECT first_open())) AS p FULL JOIN moved AS t USING (proration_id)
 WHERE (p.state, p.user_id, p.old_minor, p.new_minor::numeric) IS DISTINCT FROM
       ('captured', p.of_user, p.before_minor, p.quantity * p.unit_minor::numeric)
    OR p.at < p.period_start OR p.at >= p.period_end
    OR p.days * interval '1 day' <> p.period_end - p.period_start
    OR p.days_left <> floor(extract(epoch FROM p.period_end - p.at) / 86400)
    OR p.amount_minor <> prorated(p.old_minor, p.new_minor, p.days_left, p.days)
    OR (nullif(p.amount_minor, 0), CASE WHEN p.amount_minor <> 0 THEN p.at END, CASE WHEN p.amount_minor <> 0 THEN p.user_id END)
       IS DISTINCT FROM (t.amount_minor, t.moved_at, t.user_id)
    OR t.leg <> 0 OR t.source_at <> t.moved_at
    OR NOT EXISTS (SELECT FROM subscription_terms AS s
                    WHERE s.subscription_id = p.subscription_id AND s.from_period = p.period_no + 1
                      AND (s.plan, s.quantity, s.unit_minor) = (p.plan, p.quantity, p.unit_minor))
 ORDER BY proration_id;

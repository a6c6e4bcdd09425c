-- Every charge has its subscription, with its user, the amount of its terms, and start and end by its anchor, and comes neither too early nor behind its end.
-- Of the decisions up to a period the last one counts; the periods of a trial cost nothing. No period is charged, declined or waived before it
-- starts; a pause skips it before. None that is captured, waived, skipped or written off starts at or after cancel_at.
WITH term AS (
  SELECT b.subscription_id, b.from_period, (array_agg(t.quantity ORDER BY t.terms_id DESC) FILTER (WHERE t.quantity IS NOT NULL))[1] AS quantity,
         (array_agg(t.unit_minor ORDER BY t.terms_id DESC) FILTER (WHERE t.unit_minor IS NOT NULL))[1] AS unit_minor
    FROM (SELECT DISTINCT subscription_id, from_period FROM subscription_terms) AS b
    JOIN subscription_terms AS t ON t.subscription_id = b.subscription_id AND t.from_period <= b.from_period
   GROUP BY b.subscription_id, b.from_period
), span AS (
  SELECT t.subscription_id, from_period, coalesce(quantity, 1) * coalesce(unit_minor, s.amount_minor)::numeric AS amount_minor,
         lead(from_period, 1, 9223372036854775807) OVER (PARTITION BY t.subscription_id ORDER BY from_period) AS until_period
    FROM term AS t LEFT JOIN subscriptions AS s USING (subscription_id)
), strange AS MATERIALIZED (
  SELECT c.subscription_id, c.period_no, c.user_id, c.amount_minor, c.period_start, c.period_end, c.charged_at, c.state,
         s.subscription_id AS found_id, s.user_id AS of_user, s.cancel_at, s.anchor_at, s.unit, s.every,
         CASE WHEN c.period_no < s.trial_periods THEN 0 ELSE coalesce(t.amount_minor, s.amount_minor) END AS price_minor
    FROM open_charges AS c
    LEFT JOIN subscriptions AS s USING (subscription_id)
    LEFT JOIN span AS t
      ON t.subscription_id = c.subscription_id AND c.period_no >= t.from_period AND c.period_no < t.until_period
   WHERE s.subscription_id IS NULL OR c.user_id <> s.user_id
      OR c.amount_minor <> CASE WHEN c.period_no < s.trial_periods THEN 0 ELSE coalesce(t.amount_minor, s.amount_minor) END
      OR c.period_start <> period_start(s.anchor_at, s.unit, s.every, c.period_no)
      OR c.period_end <> period_start(s.anchor_at, s.unit, s.every, c.period_no + 1)
      OR (c.charged_at < c.period_start AND c.state <> 'skipped')
      OR (c.state <> 'declined' AND c.period_start >= s.cancel_at))
SELECT format('subscription %s period %s', subscription_id, period_no) AS what,
       CASE WHEN found_id IS NULL THEN 'no such subscription'
            ELSE format('user %s amount %s, from %s to %s, charged %s; subscription says user %s amount %s, from %s to %s, cancelled for %s',
                        user_id, amount_minor, period_start, period_end, charged_at, of_user, price_minor,
                        period_start(anchor_at, unit, every, period_no), period_start(anchor_at, unit, every, period_no + 1),
                        coalesce(cancel_at::text, 'never')) END AS detail
  FROM strange
 ORDER BY subscription_id, period_no;

-- Every proration is of a captured charge, at its days and the amount before, and has the terms of the next period.
-- The period may have begun in a closed month; no charge before the oldest such period is read.
WITH change AS (
  SELECT w.entry_id, w.user_id, w.of_source AS subscription_id, w.of_leg AS period_no, -w.amount_minor AS amount_minor, w.of_at, w.of_minor,
         w.old_minor, w.at, w.recorded_at, t.quantity * t.unit_minor::numeric AS new_minor, t.from_period, num_nulls(t.plan, t.quantity, t.unit_minor) AS nulls,
         lag(w.at) OVER before AS before_at, coalesce(lag(t.quantity * t.unit_minor::numeric) OVER before, w.of_minor) AS before_minor
    FROM wallet_entries AS w LEFT JOIN subscription_terms AS t ON t.subscription_id = w.of_source AND t.terms_id = w.terms_id
   WHERE w.kind = 'proration'
  WINDOW before AS (PARTITION BY w.of_source, w.of_leg ORDER BY w.entry_id)
), recent AS (
  SELECT * FROM change WHERE at >= (SELECT first_open())
)
SELECT format('proration %s', entry_id) AS what,
       format('%s for the rest from %s to %s at %s in subscription %s period %s (%s)', p.amount_minor, p.old_minor, p.new_minor, p.at,
              p.subscription_id, p.period_no, coalesce(c.state, 'no charge')) AS detail
  FROM recent AS p
  LEFT JOIN subscriptions AS s USING (subscription_id)
  LEFT JOIN (SELECT * FROM charges WHERE period_start >= (SELECT min(of_at) FROM recent)) AS c USING (subscription_id, period_no)
 WHERE (c.state, c.user_id, c.period_start, c.amount_minor, p.from_period, p.nulls)
       IS DISTINCT FROM ('captured', p.user_id, p.of_at, p.of_minor, p.period_no + 1, 0)
    OR NOT (p.old_minor = p.before_minor -- or less, of a period of which something was refunded, or nothing, of one that is free
            OR (p.amount_minor <= 0 AND p.old_minor BETWEEN p.new_minor AND p.before_minor
                AND (EXISTS (SELECT FROM wallet_entries AS r
                              WHERE (r.of_kind, r.of_source, r.of_leg) = ('charge', p.subscription_id, p.period_no)
                                AND r.kind <> 'proration' AND r.recorded_at <= p.recorded_at)
                     OR EXISTS (SELECT FROM change AS q
                                  JOIN wallet_entries AS r ON (r.of_kind, r.of_source, r.of_leg) = ('proration', q.entry_id, 0)
                                 WHERE q.subscription_id = p.subscription_id AND q.period_no = p.period_no
                                   AND r.recorded_at <= p.recorded_at)))
            OR (p.amount_minor = 0 AND p.old_minor = p.new_minor AND p.period_no < s.trial_periods))
    OR p.at < p.before_at OR p.at < c.period_start OR p.at >= c.period_end
    OR CASE WHEN p.new_minor BETWEEN 0 AND 9223372036854775807 AND c.period_end - c.period_start >= interval '1 day'
            THEN p.amount_minor <> prorated(p.old_minor, p.new_minor::bigint, floor(extract(epoch FROM c.period_end - p.at) / 86400)::bigint,
                                            (extract(epoch FROM c.period_end - c.period_start) / 86400)::bigint)
            ELSE true END
 ORDER BY entry_id;

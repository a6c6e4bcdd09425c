-- The life of a subscription, in the order in which it was written: its journal, charges that were captured at their first try,
-- prorations, what was given back, and the incidents that name it, its user, or a batch of its effects.
-- $1 bigint: subscription. Columns: at, what, detail, all text; amount_minor, currency (null: no money), token (null: no batch),
-- worker or role (null: unknown). Locks: none.
WITH s AS (
  SELECT * FROM subscriptions WHERE subscription_id = $1::bigint
), charge AS (
  SELECT c.*, format('period %s from %s to %s', period_no, to_char(period_start, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                     to_char(period_end, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) AS period
    FROM charges AS c WHERE subscription_id = $1::bigint
), journal AS (
  SELECT * FROM subscription_journal WHERE subscription_id = $1::bigint
), change AS (
  SELECT * FROM wallet_entries WHERE kind = 'proration' AND of_kind = 'charge' AND of_source = $1::bigint
), batch AS (
  SELECT token, worker, min(recorded_at) AS recorded_at
    FROM batches
   WHERE job = 'billing' AND token IN (SELECT fence FROM charge)
   GROUP BY token, worker
), told (at, nth, what, detail, amount_minor, token, worker) AS (
  SELECT j.recorded_at, j.entry_id,
         CASE j.event WHEN 'captured' THEN 'charged' WHEN 'cancel_set' THEN 'end set' WHEN 'written_off' THEN 'written off'
                      ELSE j.event END,
         CASE j.event
           WHEN 'made' THEN format('user %s, plan %s, every %s %s from %s', j.user_id, j.plan, j.every, j.unit,
                                   to_char(j.anchor_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
                            || CASE WHEN j.trial_periods > 0 THEN format(', %s periods free', j.trial_periods) ELSE '' END
           WHEN 'terms' THEN concat_ws(', ', 'plan ' || j.plan, 'quantity ' || j.quantity, format('from period %s on', j.from_period))
           WHEN 'cancel_set' THEN coalesce('ends ' || to_char(j.cancel_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'has no end')
           WHEN 'declined' THEN format('%s, try %s', c.period, j.try_no)
           WHEN 'captured' THEN format('%s, try %s', c.period, j.try_no)
           WHEN 'parked' THEN coalesce((SELECT detail FROM lock_incidents
                                         WHERE kind = 'parked' AND resource = 'subscription:' || $1::bigint AND token = j.token
                                         ORDER BY abs(extract(epoch FROM at - j.recorded_at)) LIMIT 1), '')
           WHEN 'due' THEN 'a deposit makes its next try due'
           WHEN 'waived' THEN format('periods %s to %s', j.from_period, j.next_period_no - 1)
           WHEN 'skipped' THEN format('periods %s to %s', j.from_period, j.next_period_no - 1)
           WHEN 'written_off' THEN format('period %s: %s', j.from_period, w.reason)
           ELSE '' END
         || CASE WHEN j.event IN ('declined', 'released', 'waived', 'due', 'cancelled')
                 THEN format('; %s', replace(j.state, '_', ' ')) ELSE '' END
         || CASE WHEN j.event IN ('declined', 'released', 'due') AND j.state IN ('active', 'past_due')
                 THEN format(', next try at %s', to_char(j.next_due_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) ELSE '' END,
         coalesce(w.amount_minor, j.amount_minor), nullif(j.token, 0), j.worker
    FROM journal AS j
    LEFT JOIN charge AS c ON c.period_no = j.next_period_no - (j.event = 'captured')::int
    LEFT JOIN write_offs AS w ON j.event = 'written_off' AND w.subscription_id = j.subscription_id AND w.period_no = j.from_period
  UNION ALL
  SELECT coalesce(b.recorded_at, c.charged_at), 0, 'charged',
         c.period || CASE WHEN abs(extract(epoch FROM b.recorded_at - c.charged_at)) > 60
                          THEN format(', as of %s', to_char(c.charged_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) ELSE '' END,
         c.amount_minor, nullif(c.fence, 0), c.worker
    FROM charge AS c
    LEFT JOIN batch AS b ON b.token = c.fence AND b.worker = c.worker
   WHERE c.state = 'captured' AND c.tries = 1
  UNION ALL
  SELECT w.recorded_at, w.entry_id, w.kind,
         format('period %s: plan %s, quantity %s, %s of %s days left', w.of_leg, t.plan, t.quantity,
                floor(extract(epoch FROM c.period_end - w.at) / 86400), extract(epoch FROM c.period_end - c.period_start)::bigint / 86400),
         -w.amount_minor, NULL, w.worker
    FROM change AS w
    LEFT JOIN subscription_terms AS t ON t.subscription_id = w.of_source AND t.terms_id = w.terms_id
    LEFT JOIN charge AS c ON c.period_no = w.of_leg
  UNION ALL
  SELECT recorded_at, entry_id, kind,
         format('%s: %s', CASE of_kind WHEN 'charge' THEN format('period %s', of_leg) ELSE of_kind END, reason),
         amount_minor, NULL, worker
    FROM wallet_entries
   WHERE (of_kind = 'charge' AND of_source = $1::bigint AND kind <> 'proration')
      OR (of_kind = 'proration' AND of_source IN (SELECT entry_id FROM change))
  UNION ALL
  SELECT i.at, i.incident_id, 'incident', format('%s, %s, %s: %s', replace(i.kind, '_', ' '), i.resource, i.phase, i.detail),
         NULL, nullif(i.token, 0), i.worker
    FROM s, lock_incidents AS i
   WHERE i.kind NOT IN ('parked', 'resumed')
     AND (i.resource = 'subscription:' || s.subscription_id
          OR (i.resource = 'user:' || s.user_id AND i.at >= (SELECT min(recorded_at) FROM journal))
          OR (i.resource = 'billing' AND (i.token IN (SELECT fence FROM charge) OR i.token IN (SELECT token FROM journal))))
)
SELECT to_char(told.at, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS at, told.what, told.detail, told.amount_minor,
       CASE WHEN told.amount_minor IS NOT NULL THEN s.currency::text END AS currency, told.token, told.worker
  FROM s, told
 ORDER BY told.at, told.nth

-- life_of_subscription(subscription): its life in the order in which it was written: its events, charges that were captured or paid at their
-- first try, attempts to take money from a card, prorations, what was given back, and the incidents that name it, its user, or a batch of its effects. Columns as of
-- life_of_order.
CREATE OR REPLACE FUNCTION life_of_subscription(p_subscription_id bigint)
RETURNS TABLE (at text, what text, detail text, amount_minor bigint, currency text, token bigint, worker text)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET timezone = 'UTC' AS $$
  WITH s AS (
    SELECT * FROM subscriptions WHERE subscription_id = p_subscription_id
  ), charge AS (
    SELECT c.*, format('period %s from %s to %s', period_no, to_char(period_start, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                       to_char(period_end, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) AS period
      FROM charges AS c WHERE subscription_id = p_subscription_id
  ), event AS (
    SELECT * FROM events WHERE subscription_id = p_subscription_id
  ), change AS (
    SELECT * FROM wallet_entries WHERE kind = 'proration' AND of_kind = 'charge' AND of_source = p_subscription_id
  ), batch AS (
    SELECT token, worker, min(recorded_at) AS recorded_at
      FROM batches
     WHERE job IN ('billing', 'payments') AND token IN (SELECT fence FROM charge)
     GROUP BY token, worker
  ), told AS (
    SELECT c.recorded_at AS at, 0 AS nth, 'made' AS what,
           format('user %s, plan %s, every %s %s from %s', s.user_id, s.plan, s.every, s.unit, to_char(s.anchor_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
           || CASE WHEN s.trial_periods > 0 THEN format(', %s periods free', s.trial_periods) ELSE '' END AS detail,
           s.amount_minor, NULL::bigint AS token,
           (SELECT worker FROM event AS e WHERE e.event IN ('subscribed', 'made') ORDER BY event_id LIMIT 1) AS worker
      FROM s, contracts AS c
     WHERE (c.user_id, c.plan, c.anchor_at) = (s.user_id, s.plan, s.anchor_at)
    UNION ALL
    SELECT recorded_at, terms_id, 'terms', concat_ws(', ', 'plan ' || plan, 'quantity ' || quantity, format('from period %s on', from_period)),
           unit_minor, NULL, worker
      FROM subscription_terms WHERE subscription_id = p_subscription_id
    UNION ALL
    SELECT e.recorded_at, e.event_id,
           CASE e.event WHEN 'captured' THEN 'charged' WHEN 'cancel_set' THEN 'end set' WHEN 'written_off' THEN 'written off'
                        ELSE e.event END,
           CASE e.event
             WHEN 'cancel_set' THEN coalesce('ends ' || to_char(e.cancel_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'has no end')
             WHEN 'declined' THEN format('%s, try %s', c.period, e.try_no)
             WHEN 'captured' THEN format('%s, try %s', c.period, e.try_no)
             WHEN 'parked' THEN coalesce((SELECT detail FROM lock_incidents
                                           WHERE kind = 'parked' AND resource = 'subscription:' || p_subscription_id AND token = e.token
                                           ORDER BY abs(extract(epoch FROM at - e.recorded_at)) LIMIT 1), '')
             WHEN 'due' THEN 'a deposit makes its next try due'
             WHEN 'waived' THEN format('periods %s to %s', e.from_period, e.next_period_no - 1)
             WHEN 'skipped' THEN format('periods %s to %s', e.from_period, e.next_period_no - 1)
             WHEN 'written_off' THEN format('period %s: %s', e.from_period, e.reason)
             ELSE '' END
           || CASE WHEN e.event IN ('declined', 'released', 'waived', 'due', 'cancelled')
                   THEN format('; %s', replace(e.state, '_', ' ')) ELSE '' END
           || CASE WHEN e.event IN ('declined', 'released', 'due') AND e.state IN ('active', 'past_due')
                   THEN format(', next try at %s', to_char(e.next_due_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) ELSE '' END,
           e.amount_minor, nullif(e.token, 0), e.worker
      FROM event AS e
      LEFT JOIN charge AS c ON c.period_no = e.next_period_no - (e.event = 'captured')::int
     WHERE e.event NOT IN ('subscribed', 'made', 'terms')
    UNION ALL
    SELECT coalesce(b.recorded_at, c.charged_at), 0, 'charged',
           c.period || CASE WHEN abs(extract(epoch FROM b.recorded_at - c.charged_at)) > 60
                            THEN format(', as of %s', to_char(c.charged_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) ELSE '' END,
           c.amount_minor, nullif(c.fence, 0), c.worker
      FROM charge AS c
      LEFT JOIN batch AS b ON b.token = c.fence AND b.worker = c.worker
     WHERE c.state IN ('captured', 'paid') AND c.tries = 1
    UNION ALL
    SELECT at, payment_id, 'card', detail, amount_minor, token, worker FROM attempts_of('charge', p_subscription_id)
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
      FROM (SELECT * FROM wallet_entries WHERE of_kind = 'charge' AND of_source = p_subscription_id AND kind <> 'proration'
             UNION ALL
            SELECT r.* FROM change AS p JOIN wallet_entries AS r ON (r.of_kind, r.of_source, r.of_leg) = ('proration', p.entry_id, 0)
             UNION ALL
            SELECT r.* FROM payments AS p JOIN wallet_entries AS r ON (r.of_kind, r.of_source, r.of_leg) = ('card', p.payment_id, 0)
             WHERE (p.source, p.kind) = (p_subscription_id, 'charge')) AS back
    UNION ALL
    SELECT i.at, i.incident_id, 'incident', format('%s, %s, %s: %s', replace(i.kind, '_', ' '), i.resource, i.phase, i.detail),
           NULL, nullif(i.token, 0), i.worker
      FROM s, lock_incidents AS i
     WHERE i.kind NOT IN ('parked', 'resumed')
       AND (i.resource = 'subscription:' || s.subscription_id
            OR (i.resource = 'user:' || s.user_id AND i.at >= (SELECT min(recorded_at) FROM contracts WHERE (user_id, plan, anchor_at) = (s.user_id, s.plan, s.anchor_at)))
            OR (i.resource = 'billing' AND (i.token IN (SELECT fence FROM charge) OR i.token IN (SELECT token FROM event))))
  )
  SELECT to_char(told.at, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS at, told.what, told.detail, told.amount_minor,
         CASE WHEN told.amount_minor IS NOT NULL THEN s.currency::text END AS currency, told.token, told.worker
    FROM s, told
   ORDER BY told.at, told.nth
$$;
COMMENT ON FUNCTION life_of_subscription IS
  'What happened to a subscription, in the order in which it was written. Errors: none of its own.';
REVOKE ALL ON FUNCTION life_of_subscription FROM PUBLIC;
GRANT EXECUTE ON FUNCTION life_of_subscription TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;

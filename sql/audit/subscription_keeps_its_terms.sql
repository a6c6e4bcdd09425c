-- The terms that a subscription was made with are those that the journal has of it.
-- Terms are user, plan, amount, currency, anchor, interval and trial. The key of the journal is read backwards: no sort.
WITH agreed AS (
  SELECT DISTINCT ON (subscription_id) subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, every, trial_periods
    FROM subscription_journal
   WHERE event = 'made'
   ORDER BY subscription_id DESC, entry_id DESC
)
SELECT format('subscription %s', subscription_id) AS what,
       format('%s; agreed: %s', coalesce((s.user_id, s.plan, s.amount_minor, s.currency, s.anchor_at, s.unit, s.every, s.trial_periods)::text, 'gone'),
              coalesce((a.user_id, a.plan, a.amount_minor, a.currency, a.anchor_at, a.unit, a.every, a.trial_periods)::text, 'nothing')) AS detail
  FROM subscriptions AS s
  FULL JOIN agreed AS a USING (subscription_id)
 WHERE s.user_id IS NULL OR a.user_id IS NULL OR s.user_id <> a.user_id OR s.amount_minor <> a.amount_minor
    OR s.anchor_at <> a.anchor_at OR s.every <> a.every OR s.plan <> a.plan OR s.currency <> a.currency OR s.unit <> a.unit
    OR s.trial_periods IS DISTINCT FROM a.trial_periods
 ORDER BY subscription_id;

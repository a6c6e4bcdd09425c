-- An active subscription is due when its next period starts, a past_due one not before.
-- Workers find their work by next_due_at: were it wrong, a period would be charged early, late or never.
SELECT format('subscription %s', s.subscription_id) AS what,
       format('%s, next_due_at is %s, period %s starts %s', s.state, s.next_due_at, s.next_period_no,
              ledgerlock.period_start(s.anchor_at, s.unit, s.every, s.next_period_no)) AS detail
  FROM ledgerlock.subscriptions AS s
 WHERE (s.state = 'active'
        AND s.next_due_at <> ledgerlock.period_start(s.anchor_at, s.unit, s.every, s.next_period_no))
    OR (s.state = 'past_due'
        AND s.next_due_at < ledgerlock.period_start(s.anchor_at, s.unit, s.every, s.next_period_no))
 ORDER BY s.subscription_id;

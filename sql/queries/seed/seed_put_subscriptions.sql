-- Makes subscriptions. $1 and $2 bigint: the rows above $1, up to $2. Locks: the new rows, their users FOR KEY SHARE.
INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, next_due_at, cancel_at)
SELECT w.base + s.subscription_id, w.base + s.user_id, s.plan, s.amount_minor, w.currency, s.anchor_at, s.unit, s.anchor_at, s.cancel_at
  FROM pg_temp.seed_of AS w, pg_temp.seed_subscriptions AS s
 WHERE s.subscription_id > $1 AND s.subscription_id <= $2

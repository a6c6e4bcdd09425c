-- A user whose row is worth holding: of the newest active subscriptions one that is due, else the newest.
-- Columns: user_id, is_due (bool). Locks: none.
SELECT user_id, next_due_at <= now() AS is_due
  FROM (SELECT subscription_id, user_id, next_due_at
          FROM subscriptions
         WHERE state = 'active'
         ORDER BY subscription_id DESC
         LIMIT 1000) AS newest
 ORDER BY is_due DESC, subscription_id DESC
 LIMIT 1

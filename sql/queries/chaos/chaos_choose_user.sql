-- A user who has work: of the newest order that waits, of the newest subscription, or any. Columns: user_id. Locks: none.
(SELECT user_id FROM orders WHERE state = 'pending' ORDER BY placed_at DESC LIMIT 1)
 UNION ALL
(SELECT user_id FROM subscriptions WHERE state = 'active' ORDER BY subscription_id DESC LIMIT 1)
 UNION ALL
(SELECT user_id FROM users LIMIT 1)
LIMIT 1

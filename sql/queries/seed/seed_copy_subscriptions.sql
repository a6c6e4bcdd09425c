-- Takes subscriptions with their numbers. Locks: the new rows, their users FOR KEY SHARE.
COPY subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit,
                               next_due_at, cancel_at) FROM STDIN

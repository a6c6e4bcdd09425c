-- One daily subscription each. $1 bigint: first user. $2 bigint: last user. Columns: none. Locks: the new rows.
INSERT INTO ledgerlock.subscriptions (user_id, plan, amount_minor, currency, anchor_at, unit, every, next_due_at)
SELECT g, 'lab', 100, 'USD', '2024-01-01Z', 'day', 1, '2024-01-01Z' FROM generate_series($1::bigint, $2::bigint) AS g

-- One daily subscription each, with three periods due. $1 bigint: first user. $2 bigint: last user. Columns: none.
-- Locks: the new rows.
INSERT INTO subscriptions (user_id, plan, amount_minor, currency, anchor_at, unit, every, next_due_at)
SELECT g, 'lab', 100, 'USD', anchor, 'day', 1, anchor
  FROM generate_series($1::bigint, $2::bigint) AS g, (SELECT now() - interval '49 hours') AS a (anchor)

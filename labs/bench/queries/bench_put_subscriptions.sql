-- Makes subscription i of user i, daily, their due times spread at random over 22 hours: with nothing else
-- due, no second period of any comes in the two hours after the load. $1 bigint: n. $2 bigint: whole days
-- that each is behind (0: one period due). $3 bigint: 0, in the order in which the users signed up; 1, in no order,
-- and in none of the users either. Columns: none. Locks: the new rows, their users FOR KEY SHARE.
INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, next_due_at)
SELECT g, g, 'bench', 100 + g % 900, 'USD', at.anchor, 'day', at.anchor
  FROM generate_series(1, $1::bigint) AS g,
       LATERAL (SELECT now() - $2::bigint * interval '24 hours'
                       - (hashint8extended(g, 1) & 4294967295) / 4294967296.0 * interval '22 hours') AS at (anchor)
 ORDER BY CASE WHEN $3::bigint = 0 THEN g ELSE hashint8extended(g, 6) END

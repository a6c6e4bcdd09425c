-- A closed account has its event, an empty wallet, no entry of ledger since, and nothing that is subscribed or ordered.
WITH closed AS (
  SELECT user_id, u.closed_at, c.at, coalesce(u.closed_at, c.at) AS since, balance_minor
    FROM (SELECT user_id, closed_at, balance_minor FROM users WHERE closed_at IS NOT NULL) AS u
    FULL JOIN (SELECT user_id, at FROM events WHERE event = 'closed') AS c USING (user_id)
)
SELECT format('user %s', user_id) AS what,
       format('closed %s, its event says %s, balance %s', closed_at, at, balance_minor) AS detail
  FROM closed
 WHERE closed_at IS DISTINCT FROM at OR balance_minor <> 0
 UNION ALL
SELECT format('user %s', user_id), format('closed, and %s %s/%s is of %s', kind, source, leg, moved_at)
  FROM closed JOIN open_ledger USING (user_id) WHERE moved_at > since + interval '1 second' -- a client's clock may be that far ahead
 UNION ALL
SELECT format('user %s', user_id), format('closed, and subscription %s is %s', subscription_id, state)
  FROM closed JOIN subscriptions USING (user_id) WHERE state <> 'cancelled'
 UNION ALL
SELECT format('user %s', user_id), format('closed, and order %s is %s', order_id, state)
  FROM closed JOIN orders USING (user_id) WHERE state IN ('pending', 'paying', 'parked')
 ORDER BY what;

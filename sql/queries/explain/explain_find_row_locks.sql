-- The sessions that have locked a row that a due subscription or order needs: of its user, or of a SKU. Each is found by xmax of
-- the row, the number of a transaction, or of several that share the lock, which pg_locks then has.
-- $1 bigint: subscription, or null. $2 bigint: order, or null. Columns: the words "a row lock"; row, session and since when. Locks: none.
WITH due AS (
  SELECT user_id FROM subscriptions WHERE subscription_id = $1::bigint AND state IN ('active', 'past_due') AND next_due_at <= now()
  UNION
  SELECT user_id FROM orders WHERE order_id = $2::bigint AND state = 'pending' AND placed_at <= now()
), locked AS (
  SELECT 'user:' || u.user_id AS name, u.xmax AS locker FROM due JOIN users AS u USING (user_id)
  UNION ALL
  SELECT 'sku:' || s.sku_id, s.xmax
    FROM stock AS s
   WHERE s.sku_id IN (SELECT sku_id FROM order_lines WHERE order_id = $2::bigint) AND EXISTS (SELECT FROM due)
), locker AS (
  SELECT name, locker AS xid FROM locked
  UNION ALL
  SELECT name, m.xid
    FROM locked,
         pg_get_multixact_members(CASE WHEN mxid_age(locker) BETWEEN 1 AND (SELECT max(mxid_age(datminmxid)) FROM pg_database)
                                       THEN locker END) AS m
   WHERE m.mode <> 'keysh'
)
SELECT 'a row lock' AS for,
       format('%s is locked by session %s (%s)%s', r.name, coalesce(l.pid::text, 'of a prepared transaction'),
              coalesce(nullif(a.application_name, ''), 'without a name'),
              coalesce(' since ' || to_char(a.xact_start, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), '')) AS detail
  FROM locker AS r
  JOIN pg_locks AS l ON l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted AND l.transactionid = r.xid
  LEFT JOIN pg_stat_activity AS a USING (pid)
 ORDER BY r.name, l.pid

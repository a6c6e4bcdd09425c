-- An order is parked or cancelled, or was rejected when it was placed, exactly when its last event says so, of its user.
WITH last AS (
  SELECT DISTINCT ON (order_id) order_id, event, state, reason, user_id
    FROM events WHERE order_id IS NOT NULL
   ORDER BY order_id DESC, event_id DESC
)
SELECT format('order %s', order_id) AS what,
       format('%s %s of user %s; last event: %s %s of user %s', coalesce(o.state, 'gone'), o.reason, o.user_id, coalesce(l.event, 'none'),
              l.reason, l.user_id) AS detail
  FROM orders AS o FULL JOIN last AS l USING (order_id)
 WHERE o.state IS NULL OR o.user_id <> l.user_id
    OR (l.event IS NULL AND (o.state IN ('parked', 'cancelled') OR (o.state = 'rejected' AND o.fence = 0)))
    OR (l.event IN ('parked', 'cancelled', 'rejected') AND (o.state, o.reason) IS DISTINCT FROM (l.state, l.reason))
    OR (l.event = 'released' AND (o.state NOT IN ('pending', 'paying', 'fulfilled', 'rejected') OR (o.state = 'rejected' AND o.fence = 0)))
 ORDER BY order_id;

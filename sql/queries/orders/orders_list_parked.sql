-- Parked orders with the reason that the journal gives. Locks: none.
-- Columns: order_id, since as text (empty: not in the journal), reason.
SELECT o.order_id, coalesce(to_char(i.at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), ''), coalesce(i.detail, 'not in the journal')
  FROM orders AS o
  LEFT JOIN (SELECT DISTINCT ON (resource) resource, at, detail
               FROM lock_incidents WHERE kind = 'parked'
              ORDER BY resource, incident_id DESC) AS i ON i.resource = 'order:' || o.order_id
 WHERE o.state = 'parked'
 ORDER BY o.order_id

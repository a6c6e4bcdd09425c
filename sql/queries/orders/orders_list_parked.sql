-- Parked orders with the reason that the journal gives. Locks: none.
-- $1 bigint: how many at most (null: all). Columns: row (what it is), id, since as text (empty: not in the journal), reason.
SELECT 'order' AS row, o.order_id AS id, coalesce(to_char(i.at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), '') AS since,
       coalesce(i.detail, 'not in the journal') AS reason
  FROM orders AS o
  LEFT JOIN (SELECT DISTINCT ON (resource) resource, at, detail
               FROM lock_incidents WHERE kind = 'parked'
              ORDER BY resource, incident_id DESC) AS i ON i.resource = 'order:' || o.order_id
 WHERE o.state = 'parked'
 ORDER BY o.order_id LIMIT $1::bigint

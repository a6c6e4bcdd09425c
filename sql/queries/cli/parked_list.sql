-- Parked rows of a job with the reason that the journal gives. Locks: none.
-- $1 text: job. $2 bigint: how many at most (null: all).
-- Columns: row (what it is), id, since as text (empty: not in the journal), reason.
WITH parked AS (
  SELECT 'subscription' AS row, subscription_id AS id FROM subscriptions WHERE $1::text = 'billing' AND state = 'parked'
  UNION ALL
  SELECT 'order', order_id FROM orders WHERE $1::text = 'orders' AND state = 'parked'
  UNION ALL
  SELECT 'payment', payment_id FROM payments WHERE $1::text = 'payments' AND state = 'parked'
)
SELECT p.row, p.id, coalesce(to_char(i.at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), '') AS since, coalesce(i.detail, 'not in the journal') AS reason
  FROM parked AS p
  LEFT JOIN (SELECT DISTINCT ON (resource) resource, at, detail
               FROM lock_incidents WHERE kind = 'parked'
              ORDER BY resource, incident_id DESC) AS i ON i.resource = p.row || ':' || p.id
 ORDER BY p.id LIMIT $2::bigint

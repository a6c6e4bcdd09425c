-- Parked subscriptions with the reason that the journal gives. Locks: none.
-- $1 bigint: how many at most (null: all). Columns: row (what it is), id, since as text (empty: not in the journal), reason.
SELECT 'subscription' AS row, s.subscription_id AS id, coalesce(to_char(i.at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), '') AS since,
       coalesce(i.detail, 'not in the journal') AS reason
  FROM subscriptions AS s
  LEFT JOIN (SELECT DISTINCT ON (resource) resource, at, detail
               FROM lock_incidents WHERE kind = 'parked'
              ORDER BY resource, incident_id DESC) AS i ON i.resource = 'subscription:' || s.subscription_id
 WHERE s.state = 'parked'
 ORDER BY s.subscription_id LIMIT $1::bigint

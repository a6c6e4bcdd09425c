-- Parked subscriptions with the reason that the journal gives. Locks: none.
-- Columns: subscription_id, since as text (empty: not in the journal), reason.
SELECT s.subscription_id, coalesce(to_char(i.at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), ''),
       coalesce(i.detail, 'not in the journal')
  FROM subscriptions AS s
  LEFT JOIN (SELECT DISTINCT ON (resource) resource, at, detail
               FROM lock_incidents WHERE kind = 'parked'
              ORDER BY resource, incident_id DESC) AS i ON i.resource = 'subscription:' || s.subscription_id
 WHERE s.state = 'parked'
 ORDER BY s.subscription_id

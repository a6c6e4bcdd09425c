-- What is set aside, and why: as journaled when it was parked. Locks: none.
-- Columns: kind, reason, parked_at as text (empty when the journal has no word of it), id, crashes.
SELECT p.kind, coalesce(i.detail, 'not in the journal') AS reason,
       coalesce(to_char(i.at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), '') AS parked_at, p.id, coalesce(q.crashes, 0)::bigint
  FROM (SELECT 'subscription' AS kind, 'billing' AS job, subscription_id AS id
          FROM ledgerlock.subscriptions WHERE state = 'parked'
         UNION ALL
        SELECT 'order', 'orders', order_id FROM ledgerlock.orders WHERE state = 'parked') AS p
  LEFT JOIN (SELECT DISTINCT ON (resource) resource, detail, at
               FROM ledgerlock.lock_incidents WHERE kind = 'parked'
              ORDER BY resource, incident_id DESC) AS i ON i.resource = p.kind || ':' || p.id
  LEFT JOIN ledgerlock.quarantine AS q ON q.job = p.job AND q.item = p.id
 ORDER BY p.kind, p.id

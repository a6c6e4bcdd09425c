-- audit_totals_subscriptions: subscriptions by state, every state in its order. Columns: name, count. Locks: none.
SELECT state.name, coalesce(n, 0)::int8 AS count
  FROM unnest(ARRAY['active', 'past_due', 'paying', 'unpaid', 'cancelled', 'parked']) WITH ORDINALITY AS state (name, nr)
  LEFT JOIN (SELECT state AS name, count(*) AS n FROM subscriptions GROUP BY 1) AS s USING (name)
 ORDER BY nr;

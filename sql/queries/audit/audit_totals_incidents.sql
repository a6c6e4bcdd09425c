-- audit_totals_incidents: lock_incidents by kind, every kind. Columns: name, count. Locks: none.
SELECT kind.name, coalesce(n, 0)::int8 AS count
  FROM unnest(ARRAY['lost', 'fenced', 'uncertain', 'commit_unknown', 'forced_unlock', 'parked',
                    'resumed'])
       WITH ORDINALITY AS kind (name, nr)
  LEFT JOIN (SELECT kind AS name, count(*) AS n FROM lock_incidents GROUP BY 1) AS i USING (name)
 ORDER BY nr;

-- What the workers of the pool met and counted, of what can go wrong. Columns: name, count. Locks: none.
SELECT key::text, sum(value::bigint)::bigint
  FROM ledgerlock.workers, jsonb_each_text(counters)
 WHERE key IN ('busy', 'commit_unknown', 'conflicts', 'epoch_bumps', 'fenced', 'lost', 'parked', 'uncertain')
 GROUP BY key
 ORDER BY key

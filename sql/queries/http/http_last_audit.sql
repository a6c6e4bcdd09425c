-- The last whole audit that a pool made. Locks: none. No row, or one column: a JSON object of invariants, broken (an array of
-- names), took_ms and age_ms.
SELECT json_build_object('invariants', invariants, 'broken', broken, 'took_ms', took_ms,
         'age_ms', (extract(epoch FROM clock_timestamp() - ended_at) * 1000)::bigint)::text
  FROM audits ORDER BY audit_id DESC LIMIT 1

-- The room that both sides take of the disk, with their indexes. $1 text: the schema of the guarded side. Columns: bytes. Locks: none.
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint
  FROM pg_class
 WHERE relkind = 'r' AND relnamespace IN (to_regnamespace($1::text), to_regnamespace('ledgerlock_plain'))

-- The cells of a Citus cluster: its distributed schemas with this name and a number. $1 text: postgres.schema.
-- Column: the numbers in their order, as 1,3. Locks: none.
SELECT coalesce(string_agg(substr(nspname, length($1::text) + 2), ',' ORDER BY substr(nspname, length($1::text) + 2)::integer), '')
  FROM pg_dist_schema JOIN pg_namespace ON oid = schemaid
 WHERE starts_with(nspname, $1::text || '_') AND substr(nspname, length($1::text) + 2) ~ '^(0|[1-9][0-9]{0,3})$'

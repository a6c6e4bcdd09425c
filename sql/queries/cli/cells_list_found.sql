-- The cells of a Citus cluster: its distributed schemas with this name and a number. $1 text: postgres.schema. $2 text: cells.only.
-- Column: the numbers of those that $2 names, in their order, as 1,3. Locks: none.
SELECT coalesce(string_agg(number, ',' ORDER BY number::integer), '')
  FROM (SELECT substr(nspname, length($1::text) + 2) AS number
          FROM pg_dist_schema JOIN pg_namespace ON oid = schemaid
         WHERE starts_with(nspname, $1::text || '_')) AS found
 WHERE number ~ '^(0|[1-9][0-9]{0,3})$' AND ($2::text = 'all' OR number = ANY(string_to_array($2::text, ',')))

-- The answer of function reconcile: first its sums, and then its entries.
-- $1 text: since. $2 text: attempts that were asked for at this time or later are not judged. $3 text: what the gateway lists, objects with a
-- comma between. $4 bigint: 1 if all
-- entries are wanted, 0 for those that are a fault alone. Locks: none.
-- Columns: how many (null: an entry), 1 if it is a fault, class, kind, paid, attempt, reference, here, there, currency, loose in minor units; then, as
-- text, minor units here and there.
WITH entries AS MATERIALIZED (
  SELECT *, (class NOT IN ('matched', 'open', 'returned', 'foreign'))::integer AS fault
    FROM reconcile($1::text::timestamptz, $2::text::timestamptz, ('[' || $3::text || ']')::json)
)
SELECT count(*) AS n, fault, class, kind, NULL AS paid, NULL::integer AS attempt_no, NULL AS reference, NULL AS here, NULL AS there,
       currency, NULL::bigint AS loose_minor, sum(here_minor)::text AS here_minor, sum(there_minor)::text AS there_minor
  FROM entries GROUP BY fault, class, kind, currency
 UNION ALL
SELECT NULL, fault, class, kind, paid, attempt_no, reference, here, there, currency, loose_minor, here_minor::text, there_minor::text
  FROM entries WHERE fault = 1 OR $4::bigint = 1
 ORDER BY n NULLS LAST, fault, class, kind, currency, paid, attempt_no, reference

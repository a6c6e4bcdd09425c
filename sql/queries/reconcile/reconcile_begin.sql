-- The window of a comparison. $1 text: since when, null for the last 30 days.
-- Columns: since; attempts that were asked for at this time or later are not judged, as text: a call that was under way may be missing in the list; seconds since
-- 1970 from which on the gateway lists, a day earlier, so that no clock hides an entry. Locks: none.
SELECT since::text, (now() - interval '5 minutes')::text AS asked_before, greatest(extract(epoch FROM since)::bigint - 86400, 1) AS listed_since
  FROM (SELECT coalesce($1::text::timestamptz, now() - interval '30 days') AS since) AS w

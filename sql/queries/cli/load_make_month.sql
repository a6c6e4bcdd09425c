-- load_make_month: makes the month that opening deposits of seed and import belong to. $1 text: a time, null for now.
-- Column: how many were made. Locks: SHARE UPDATE EXCLUSIVE on the tables with months, if it is not there yet.
SELECT make_months(at, at) AS made FROM (SELECT coalesce($1::text::timestamptz, now()) AS at) AS wanted;

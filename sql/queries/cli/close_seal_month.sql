-- Seals a month. $1 text: its first day. $2 text: its digest when it was proved. Column: how many rows it has. Locks: ACCESS EXCLUSIVE
-- on its partition.
SELECT close_month($1::text::date, $2::text)

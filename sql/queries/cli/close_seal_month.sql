-- Seals a month. $1 text: its first day. Column: how many rows it has. Locks: ACCESS EXCLUSIVE on its partition.
SELECT close_month($1::text::date)

-- The digest of the rows of a month in the snapshot of its proof. $1 text: its first day. Columns: one, text. Locks: none.
SELECT month_digest($1::text::date)

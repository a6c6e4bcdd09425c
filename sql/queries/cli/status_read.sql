-- status_read: what a person wants to see of the tables. $1 timestamptz: now (null: the database's clock). Locks: none.
-- Column: the document of function status, as text.
SELECT status($1::timestamptz)::text

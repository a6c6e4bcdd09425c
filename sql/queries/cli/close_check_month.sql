-- Refuses a month that cannot be closed, before the audit. $1 text: its first day. Columns: one, void. Locks: none.
SELECT check_closable($1::text::date)::text

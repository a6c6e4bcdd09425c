-- The last numbers of what is stored in parts. Columns: heads bigint, lines of subscriptions bigint. Locks: none.
SELECT coalesce((SELECT max(no) FROM pg_temp.import_heads), 0),
       coalesce((SELECT max(line) FROM pg_temp.import_subscriptions), 0)

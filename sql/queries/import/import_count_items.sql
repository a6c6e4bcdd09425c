-- How many items there are, after import_divide. Columns: bigint. Locks: none.
SELECT greatest((SELECT max(item) FROM pg_temp.import_all_stock), (SELECT max(item) FROM pg_temp.import_all_subscriptions),
                (SELECT max(item) FROM pg_temp.import_all_orders), 0)

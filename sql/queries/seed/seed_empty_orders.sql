-- Makes room for the next part of the orders. Locks: none that another session meets.
TRUNCATE pg_temp.seed_orders

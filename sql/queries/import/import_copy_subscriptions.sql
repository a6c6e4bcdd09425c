-- Takes the good lines of a subscriptions file. Locks: none.
COPY pg_temp.import_subscriptions (line, customer_ref, plan, amount, unit, every, anchor_at, raw) FROM STDIN

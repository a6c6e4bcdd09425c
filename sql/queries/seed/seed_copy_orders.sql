-- Takes orders as clients send them. Locks: none.
COPY pg_temp.seed_orders (order_id, user_id, key, lines, total_minor, placed_at, is_sent_twice) FROM STDIN

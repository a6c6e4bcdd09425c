-- Takes the good lines of an orders file. Locks: none.
COPY pg_temp.import_orders (line, order_ref, customer_ref, sku, quantity, unit_price, placed_at, raw) FROM STDIN

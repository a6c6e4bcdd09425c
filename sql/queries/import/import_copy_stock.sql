-- Takes the good lines of a stock file. Locks: none.
COPY pg_temp.import_stock (line, sku, quantity, unit_price, raw) FROM STDIN

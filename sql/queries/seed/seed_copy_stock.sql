-- Takes SKUs with their numbers. Locks: the new rows.
COPY stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, currency) FROM STDIN

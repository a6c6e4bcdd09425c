-- Takes the lines of the orders. Locks: the new rows, their orders and SKUs FOR KEY SHARE.
COPY order_lines (order_id, sku_id, unit_price_minor, qty) FROM STDIN

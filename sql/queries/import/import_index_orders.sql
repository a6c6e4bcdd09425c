-- Finds the lines of an order, of which a part is stored at a time. Locks: none.
CREATE INDEX ON pg_temp.import_orders (order_ref, customer_ref)

-- The SKUs that were sold most in the last minutes. $1 timestamptz: now (null: the database's clock).
-- Columns: sku, sold, on_hand, initial_qty. Locks: none.
SELECT sku, sold, on_hand, initial_qty FROM newest_sales($1::timestamptz, 200)

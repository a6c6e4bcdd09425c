-- Highest fence among these SKUs: tells how far our token lies behind when they were fenced.
-- $1 bigint[]: SKU ids. Columns: fence. Locks: none.
SELECT max(fence) FROM ledgerlock.stock WHERE sku_id = ANY ($1::bigint[])

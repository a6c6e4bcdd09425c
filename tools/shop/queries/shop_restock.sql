-- A delivery for each SKU that is nearly sold out. $1 bigint: a delivery number that was never given. Columns: none. Locks: the rows.
SELECT receive_stock(sku, $1::bigint, 60) FROM stock WHERE on_hand < 6 AND sku LIKE 'shop-%' ORDER BY sku_id

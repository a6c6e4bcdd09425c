-- One article with so many units. $1 bigint: SKU. $2 bigint: units. Columns: none. Locks: the new row.
INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, currency)
VALUES ($1::bigint, 'lab-' || $1, $2::bigint, $2, 250, 'USD')

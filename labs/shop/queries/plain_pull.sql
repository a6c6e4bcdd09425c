-- The oldest items that are due on the unguarded side. Columns: kind (text), item_id, user_id, sku_id. Locks: none.
SELECT kind, item_id, user_id, sku_id FROM ledgerlock_plain.items WHERE done < periods ORDER BY item_id LIMIT 40

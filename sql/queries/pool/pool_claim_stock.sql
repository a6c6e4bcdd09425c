-- Claims SKUs, after the users and in the same way.
-- $1 bigint: token. $2 bigint[]: SKU ids.
-- The row has transaction id, sku_ids in their order (null: none was claimed). Locks: the rows, until the end.
SELECT xid, sku_ids FROM claim_stock($1::bigint, $2::bigint[])

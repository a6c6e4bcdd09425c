-- Claims SKUs, after the users and in the same way.
-- $1 bigint: token. $2 bigint[]: SKU ids. Columns: sku_id, transaction id. Locks: the rows, until the end.
SELECT sku_id, pg_current_xact_id()::text::bigint
  FROM ledgerlock.stock
 WHERE sku_id = ANY ($2::bigint[]) AND fence <= $1::bigint
 ORDER BY sku_id
   FOR NO KEY UPDATE SKIP LOCKED

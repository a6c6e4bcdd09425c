-- Claims SKUs, after the users and in the same way.
-- $1 bigint: token. $2 bigint[]: SKU ids.
-- One row: transaction id, sku_ids in their order (null: none is ours). Locks: the rows, until the end.
SELECT pg_current_xact_id()::text::bigint, array_agg(sku_id)
  FROM (SELECT sku_id
          FROM ledgerlock.stock
         WHERE sku_id = ANY ($2::bigint[]) AND fence <= $1::bigint
         ORDER BY sku_id
           FOR NO KEY UPDATE SKIP LOCKED) AS claimed

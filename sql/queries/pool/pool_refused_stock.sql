-- Tells why a claim did not return some SKUs: fenced (the row carries a newer token than $1) or absent. A SKU of the list
-- that is not returned here is locked by another session. A fence half a day ahead of the clock is none that a batch
-- has written: a token is the time in microseconds, and check_batch refuses one that is a day ahead.
-- $1 bigint: token. $2 bigint[]: ids. Columns: id; fence (null: no such row), highest first; why no batch can ever claim it
-- (null: one with a higher token can). Locks: none.
SELECT asked.id, refused.fence,
       CASE WHEN refused.sku_id IS NULL THEN 'sku ' || asked.id || ' does not exist'
            WHEN refused.fence > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 43200000000 THEN 'its row carries a fence far ahead of the clock' END
  FROM unnest($2::bigint[]) AS asked (id)
  LEFT JOIN stock AS refused ON refused.sku_id = asked.id
 WHERE refused.sku_id IS NULL OR refused.fence > $1::bigint
 ORDER BY refused.fence DESC NULLS LAST

-- Which of the rows that a claim did not return are fenced: they carry a newer token than ours. The others are
-- held by another session.
-- $1 bigint: token. $2 bigint[]: ids. Columns: id, fence; highest fence first. Locks: none.
SELECT sku_id, fence
  FROM ledgerlock.stock
 WHERE sku_id = ANY ($2::bigint[]) AND fence > $1::bigint
 ORDER BY fence DESC

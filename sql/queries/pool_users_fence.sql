-- Which of the rows that a claim did not return are fenced: they carry a newer token than ours. The others are
-- held by another session.
-- $1 bigint: token. $2 bigint[]: ids. Columns: id, fence; highest fence first. Locks: none.
SELECT user_id, fence
  FROM ledgerlock.users
 WHERE user_id = ANY ($2::bigint[]) AND fence > $1::bigint
 ORDER BY fence DESC

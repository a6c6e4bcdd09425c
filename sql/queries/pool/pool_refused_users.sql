-- Tells why a claim did not return some users: fenced (the row carries a newer token than $1) or absent. A user of the list
-- that is not returned here is locked by another session. No batch has a token above a fence that is more than an hour ahead of
-- the clock (check_batch): its row waits until the clock is there.
-- $1 bigint: token. $2 bigint[]: ids. Columns: id; fence (null: no such row), first the highest that a token can pass; why no
-- batch can ever claim it (null: one can); 1 if no token can pass its fence yet, else 0. Locks: none.
SELECT asked.id, refused.fence, CASE WHEN refused.user_id IS NULL THEN 'user ' || asked.id || ' does not exist' END,
       coalesce(refused.fence > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 3600000000, false)::int::bigint
  FROM unnest($2::bigint[]) AS asked (id)
  LEFT JOIN users AS refused ON refused.user_id = asked.id
 WHERE refused.user_id IS NULL OR refused.fence > $1::bigint
 ORDER BY 4, refused.fence DESC NULLS LAST

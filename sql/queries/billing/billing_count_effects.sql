-- After a COMMIT whose answer was lost: how many charges, events and planned payments of these subscriptions carry the batch's token. A later
-- try of another batch gives a declined charge its own token; the event of the earlier one stays.
-- $1 bigint: token. $2 bigint[]: subscription ids. Columns: count. Locks: none.
SELECT (SELECT count(*) FROM charges WHERE subscription_id = ANY ($2::bigint[]) AND fence = $1::bigint)
       + (SELECT count(*) FROM events WHERE subscription_id = ANY ($2::bigint[]) AND token = $1::bigint)
       + (SELECT count(*) FROM payments WHERE source = ANY ($2::bigint[]) AND kind = 'charge' AND planned_fence = $1::bigint)

-- The attempts of a list that are still due, in the form of payments_pull_due.
-- $1 bigint[]: payment ids. $2 timestamptz: now, which is not read.
-- The row has arrays, in parallel: payment_ids, resource kinds (null: all 0, users), user_ids, places (null), times (null). Arrays null:
-- none is due, or the job is paused. Locks: none.
SELECT array_agg(p.payment_id ORDER BY asked.nth), NULL::bigint[], array_agg(p.user_id ORDER BY asked.nth), NULL::tid[], NULL::timestamptz[]
  FROM unnest($1::bigint[]) WITH ORDINALITY AS asked (id, nth)
  JOIN payments AS p ON p.payment_id = asked.id
 WHERE p.state IN ('planned', 'sent', 'unknown') AND p.due_at <= (SELECT now() WHERE $2::timestamptz IS NULL OR true)
   AND NOT EXISTS (SELECT FROM paused_jobs WHERE job = 'payments')

-- Sets subscriptions aside whose effects broke an invariant: never pulled again until a person resumes them.
-- $1 bigint[]: subscription ids. Columns: none. Locks: the rows.
UPDATE ledgerlock.subscriptions
   SET state = 'parked'
 WHERE subscription_id = ANY ($1::bigint[]) AND state IN ('active', 'past_due')

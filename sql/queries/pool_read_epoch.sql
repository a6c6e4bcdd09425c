-- The epoch in force, and a number that no other batch gets (only taken where it is asked for).
-- $1 bigint: not 0: take a number. Columns: epoch, number. Locks: none.
SELECT epoch, CASE WHEN $1::bigint <> 0 THEN nextval('ledgerlock.lock_tokens') ELSE 0 END FROM ledgerlock.lock_epoch

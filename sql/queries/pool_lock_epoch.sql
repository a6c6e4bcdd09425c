-- One at a time raises and installs an epoch, so that a loss in Redis raises it once, not once a worker. The turn is
-- taken and given back in transactions of their own: an epoch must be committed before it is installed.
-- $1 text: worker. $2 bigint: milliseconds after which others may take the turn of a worker that died in it.
-- Columns: one, 1; no row: it is another's turn. Locks: the row.
UPDATE ledgerlock.lock_epoch
   SET raiser = $1::text, raiser_until = clock_timestamp() + $2::bigint * interval '1 millisecond'
 WHERE raiser IS NULL OR raiser = $1::text OR raiser_until <= clock_timestamp()
RETURNING 1::bigint

-- A suspect was worked alone: it is none any more, if this transaction commits.
-- $1 text: job. $2 bigint: item. Columns: nothing of use. Locks: its row in quarantine.
SELECT ledgerlock.absolve($1::text, $2::bigint)

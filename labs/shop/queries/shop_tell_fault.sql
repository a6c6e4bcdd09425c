-- Asks the shop of a demonstration (labs/shop) to do the same to its workers. $1 text: fault. $2 bigint: how long in milliseconds.
-- Columns: none. Locks: the new row.
INSERT INTO ledgerlock_plain.faults (action, lasts_ms) VALUES ($1::text, $2::bigint)

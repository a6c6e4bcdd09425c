-- Goes on with the numbers of a cell that moves here. $1 bigint: the cell. $2 text: what cells_read_numbers read at its node until now.
-- Column: how many columns were set. Locks: SHARE ROW EXCLUSIVE on their sequences.
SELECT start_identities($1::bigint, $2::jsonb)

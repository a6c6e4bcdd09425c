-- Goes on with the numbers of a cell that moves here, behind those of its rows and 2^20 more that others may have taken meanwhile.
-- $1 bigint: the cell. Column: how many columns were set. Locks: SHARE ROW EXCLUSIVE on their sequences.
SELECT start_identities($1::bigint, 1 << 20)

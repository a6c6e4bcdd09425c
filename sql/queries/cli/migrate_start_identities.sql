-- migrate_start_identities: lets the numbers of rows begin at those of a cell, before the first row.
-- $1 bigint: the cell. Column: how many columns were set. Locks: ACCESS EXCLUSIVE on the tables that are set.
SELECT start_identities($1::bigint) AS set;

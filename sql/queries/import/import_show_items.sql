-- Which items the other statements see from now on, to the end of the transaction or savepoint. $1 bigint the first, $2 bigint the last.
-- Columns: two, text. Locks: none.
SELECT set_config('ledgerlock.first_item', $1::bigint::text, true), set_config('ledgerlock.last_item', $2::bigint::text, true)

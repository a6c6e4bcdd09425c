-- The calls of workers that were in this slot before, and died: nobody waits for their answers, so they are made again at once.
-- $1 text: pool and slot, with the dot behind it. $2 text: the worker that is in it now. Column: how many they are. Locks: the rows.
SELECT take_over_payments($1::text, $2::text)

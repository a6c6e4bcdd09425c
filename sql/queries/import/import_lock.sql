-- Lets one import or seed write at a time. Columns: one, void. Locks: advisory, to the end of the transaction.
SELECT pg_advisory_xact_lock(hashtext(current_schema() || ' load'))::text

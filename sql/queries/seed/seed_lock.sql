-- Lets one seed or import write at a time. Columns: one, void. Locks: advisory, to the end of the transaction.
SELECT pg_advisory_xact_lock(hashtext(current_schema() || ' load'))::text

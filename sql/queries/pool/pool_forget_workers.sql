-- Removes the counters of old pools; a pool calls it once at its start. Columns: number of rows. Locks: those rows.
SELECT forget_workers()

-- Removes what workers of old pools have counted, once as a pool starts. Columns: how many rows. Locks: those rows.
SELECT ledgerlock.forget_workers()

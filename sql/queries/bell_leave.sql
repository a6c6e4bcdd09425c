-- The other half of bell_watch: the pool is awake, no door needs to notify. Columns: none.
SELECT pg_advisory_unlock_all()

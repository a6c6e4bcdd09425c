-- Tells the planner how many orders were staged. Locks: none that matter.
ANALYZE pg_temp.import_heads

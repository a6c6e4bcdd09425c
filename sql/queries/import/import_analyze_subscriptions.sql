-- Tells the planner how much was staged. Locks: none that matter.
ANALYZE pg_temp.import_subscriptions

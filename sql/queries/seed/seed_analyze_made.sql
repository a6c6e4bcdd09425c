-- Tells the planner how much was made up. Locks: none that matter.
ANALYZE pg_temp.seed_of, pg_temp.seed_subscriptions, pg_temp.seed_lines

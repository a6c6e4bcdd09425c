-- Takes the function of seed_create away. Locks: none.
DROP FUNCTION pg_temp.draw(bigint, bigint, bigint, bigint)

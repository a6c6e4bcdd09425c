-- run_read_clock: the database's clock.
-- No parameters. Column: microseconds since 1970. No lock.
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8;

-- load_read_times: between which times opening deposits of seed and import may be booked.
-- No parameters. Columns: the start of the first month that is not closed, or the lowest number when none is; the clock; both in
-- microseconds since 1970. No lock.
SELECT CASE WHEN isfinite(at) THEN (extract(epoch FROM at) * 1000000)::bigint ELSE '-9223372036854775808'::bigint END AS from_us,
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS to_us
  FROM first_open() AS at;

-- When the transactions of the workers ran, as their effects tell. $1 bigint: only those from this time on, in
-- microseconds. Columns: transactions; microseconds from the begin of the first to the end of the last; whether the
-- server keeps the times of commits (if not, the begin of the last counts as its end); microseconds of a transaction
-- from begin to end, median and 99th percentile. Locks: none.
WITH since AS (
  SELECT to_timestamp(0) + $1::bigint * interval '1 microsecond' AS at,
         current_setting('track_commit_timestamp')::boolean AS tracked
), effects (xid, begins) AS (
  SELECT DISTINCT xmin, charged_at FROM charges WHERE charged_at >= (SELECT at FROM since)
  UNION ALL
  SELECT DISTINCT xmin, decided_at FROM orders WHERE decided_at >= (SELECT at FROM since)
), transactions AS (
  SELECT begins, CASE WHEN (SELECT tracked FROM since) THEN pg_xact_commit_timestamp(xid) ELSE begins END AS ends
    FROM effects
)
SELECT count(*), coalesce((extract(epoch FROM max(ends) - min(begins)) * 1000000)::bigint, 0),
       (SELECT tracked::integer::bigint FROM since),
       coalesce((extract(epoch FROM percentile_disc(0.5) WITHIN GROUP (ORDER BY ends - begins)) * 1000000)::bigint, 0),
       coalesce((extract(epoch FROM percentile_disc(0.99) WITHIN GROUP (ORDER BY ends - begins)) * 1000000)::bigint, 0)
  FROM transactions

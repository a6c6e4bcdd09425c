-- The state of the tables. Locks: none. Columns: rows of hot tables that are dead and were not cleared, the same in percent of
-- all; the age of the oldest transaction that is open, in seconds; months that are missing of this one and the next;
-- parked rows; paused jobs; workers seen within ten seconds; the 99th percentile of the milliseconds from lock to the
-- end of a batch, of the last thousand (-1: there was none).
WITH hot AS (
  SELECT sum(n_dead_tup) AS dead, sum(n_live_tup) AS live FROM pg_catalog.pg_stat_all_tables
   WHERE relid IN ('users'::regclass, 'subscriptions'::regclass, 'stock'::regclass, 'orders'::regclass)
), newest AS (
  SELECT extract(epoch FROM recorded_at) * 1000 - token / 1000.0 AS ms
    FROM (SELECT recorded_at, token FROM batches ORDER BY batch_id DESC LIMIT 1000) AS b
)
SELECT coalesce((SELECT dead FROM hot), 0)::bigint AS dead,
       coalesce((SELECT 100 * dead / nullif(dead + live, 0) FROM hot), 0)::bigint AS dead_percent,
       coalesce((SELECT max(extract(epoch FROM clock_timestamp() - xact_start)) FROM pg_catalog.pg_stat_activity
                  WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()), 0)::bigint AS oldest_s,
       (SELECT count(*) FROM (VALUES (date_trunc('month', now())), (date_trunc('month', now()) + interval '1 month')) AS m (at)
         WHERE NOT EXISTS (SELECT FROM months WHERE month = m.at::date)) AS missing_months,
       (SELECT count(*) FROM subscriptions WHERE state = 'parked') + (SELECT count(*) FROM orders WHERE state = 'parked') AS parked,
       (SELECT count(*) FROM paused_jobs) AS paused,
       (SELECT count(*) FROM workers WHERE seen_at > clock_timestamp() - interval '10 seconds') AS workers,
       coalesce((SELECT percentile_disc(0.99) WITHIN GROUP (ORDER BY ms) FROM newest), -1)::bigint AS batch_ms

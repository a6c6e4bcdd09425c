-- doctor(lease_ms): the tables, as `ledgerlock doctor` checks them: dead rows of the hot ones, the oldest transaction that is open, the
-- partitions of this month and the next, the time from lock to the end of a batch (of the last thousand, 99 % took at most that)
-- beside the lease of a lock in milliseconds, and all that is parked, paused, seen. An array of name, verdict (0 good, 1 to look at,
-- 2 failed), says, remedy.
CREATE OR REPLACE FUNCTION doctor(p_lease_ms bigint DEFAULT 3000)
RETURNS jsonb LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET timezone = 'UTC' AS $$
DECLARE -- of the server, whose views no statement about a distributed schema may read
  v_dead    bigint;
  v_percent bigint;
  v_oldest  bigint;
BEGIN
  SELECT coalesce(sum(n_dead_tup), 0), coalesce(100 * sum(n_dead_tup) / nullif(sum(n_dead_tup) + sum(n_live_tup), 0), 0)
    INTO STRICT v_dead, v_percent FROM pg_catalog.pg_stat_all_tables
   WHERE relid IN ('users'::regclass, 'subscriptions'::regclass, 'stock'::regclass, 'orders'::regclass);
  SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0) INTO STRICT v_oldest FROM pg_catalog.pg_stat_activity
   WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid();
  RETURN (
  WITH hot AS (
    SELECT v_dead AS dead, v_percent AS percent, current_setting('autovacuum') = 'off' AS is_off
  ), oldest AS (
    SELECT v_oldest AS s
  ), missing AS (
    SELECT count(*) AS n FROM (VALUES (date_trunc('month', now())), (date_trunc('month', now()) + interval '1 month')) AS m (at)
     WHERE NOT EXISTS (SELECT FROM months WHERE month = m.at::date)
  ), lease AS (
    SELECT (percentile_disc(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM recorded_at) * 1000 - token / 1000.0))::bigint AS ms
      FROM (SELECT recorded_at, token FROM batches ORDER BY batch_id DESC LIMIT 1000) AS newest
  ), counted AS (
    SELECT 'parked_rows' AS name, (SELECT count(*) FROM subscriptions WHERE state = 'parked') + (SELECT count(*) FROM orders WHERE state = 'parked') AS n,
           'rows are parked' AS words, 'ledgerlock parked' AS remedy
    UNION ALL
    SELECT 'paused_jobs', count(*), 'jobs are paused', 'ledgerlock resume JOB' FROM paused_jobs
  ), found AS (
    SELECT 'dead_rows' AS name, CASE WHEN is_off THEN 2 WHEN dead > 10000 AND percent > 30 THEN 1 ELSE 0 END AS verdict,
           CASE WHEN is_off THEN 'autovacuum is off' ELSE format('%s dead rows in the hot tables, %s %%', dead, percent) END AS says,
           CASE WHEN is_off THEN 'set autovacuum to on' ELSE 'end old transactions; let autovacuum run more often' END AS remedy
      FROM hot
    UNION ALL
    SELECT 'oldest_transaction', (s > 600)::int, format('the oldest open transaction is %s s old', s),
           'end it: dead rows cannot be cleared while it is open'
      FROM oldest
    UNION ALL
    SELECT 'months_ahead', (n > 0)::int,
           CASE WHEN n > 0 THEN format('%s of this month and the next have no partition', n)
                ELSE 'this month and the next have partitions (0 missing)' END, 'ledgerlock migrate, or start a pool'
      FROM missing
    UNION ALL
    SELECT 'lease_length', CASE WHEN ms > p_lease_ms THEN 2 WHEN ms > p_lease_ms / 3 THEN 1 ELSE 0 END,
           CASE WHEN ms IS NULL THEN format('%s ms; no batch was made yet', p_lease_ms)
                ELSE format('%s ms; of the last batches 99 %% took at most %s ms', p_lease_ms, ms) END,
           'a longer locks.lease_ms, or a smaller pool.batch'
      FROM lease
    UNION ALL
    SELECT name, (n > 0)::int, format('%s %s', n, words), remedy FROM counted
    UNION ALL
    SELECT 'workers_seen', (count(*) = 0)::int, format('%s workers have reported within ten seconds', count(*)), 'ledgerlock run'
      FROM live_workers
  )
  SELECT jsonb_agg(to_jsonb(f)) FROM found AS f);
END $$;
COMMENT ON FUNCTION doctor IS
  'Checks of the tables: what is so, whether it is to be looked at, and what to do then. Errors: none of its own.';
REVOKE ALL ON FUNCTION doctor FROM PUBLIC;
GRANT EXECUTE ON FUNCTION doctor TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;

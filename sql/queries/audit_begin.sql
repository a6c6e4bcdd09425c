-- audit_begin: the instant that counts as now, and how this session plans the audit.
-- $1 text: now, null for the start of the transaction. $2 int8: lag in seconds.
-- Columns: now as text, whether it is finite. Sets ledgerlock.now and ledgerlock.lag, which files of
-- sql/audit may read, until the transaction ends. Every query of the audit reads whole tables, so nested loops and
-- just-in-time compiling only cost there. Little work_mem: hash tables that the processor's caches hold are faster
-- than large ones, and every connection takes it several times. random_page_cost 1.5: duplicates are found soonest
-- by walking a unique index, but rows by reading the table. No parallel workers: the connections are those.
-- Locks: none.
SELECT to_char(at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS now, isfinite(at) AS is_finite,
       set_config('ledgerlock.now', at::text, true) AS set_now,
       set_config('ledgerlock.lag', $2::int8 || ' seconds', true) AS set_lag,
       set_config('work_mem', '4MB', true) AS set_work_mem,
       set_config('enable_nestloop', 'off', true) AS set_nestloop,
       set_config('random_page_cost', '1.5', true) AS set_random_page_cost,
       set_config('max_parallel_workers_per_gather', '0', true) AS set_parallel,
       set_config('jit', 'off', true) AS set_jit
  FROM (SELECT coalesce($1::text::timestamptz, now()) AS at) AS wanted;

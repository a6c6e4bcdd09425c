-- audit_begin: what counts as now, and how this session plans the audit.
-- $1 text: now, null for the start of the transaction. $2 int8: lag in seconds. $3 text: the objects of the schema.
-- $4 text: on, to read closed months, too. Columns: now as text, whether it is finite. Sets ledgerlock.now, ledgerlock.lag,
-- ledgerlock.objects and ledgerlock.sealed, which files of sql/audit may read, until the transaction ends. Every query of
-- the audit reads whole tables, so nested loops and
-- just-in-time compilation are switched off. work_mem is small: a hash table that fits into the processor's cache is
-- faster than a large one, and every process uses work_mem several times. random_page_cost 1.5: the planner shall find
-- duplicates by reading a unique index in order, and rows by reading the table. At most two parallel workers.
-- Locks: none.
SELECT to_char(at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS now, isfinite(at) AS is_finite,
       set_config('ledgerlock.now', at::text, true) AS set_now,
       set_config('ledgerlock.lag', $2::int8 || ' seconds', true) AS set_lag,
       set_config('ledgerlock.objects', $3::text, true) AS set_objects,
       set_config('ledgerlock.sealed', $4::text, true) AS set_sealed,
       set_config('work_mem', '4MB', true) AS set_work_mem,
       set_config('enable_nestloop', 'off', true) AS set_nestloop,
       set_config('random_page_cost', '1.5', true) AS set_random_page_cost,
       set_config('max_parallel_workers_per_gather', '2', true) AS set_parallel,
       set_config('jit', 'off', true) AS set_jit
  FROM (SELECT coalesce($1::text::timestamptz, now()) AS at) AS wanted;

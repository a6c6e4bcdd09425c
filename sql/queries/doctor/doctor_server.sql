-- The server, its clock and this session as `doctor` finds them, a row for each check. $1 bigint: connections that a pool takes.
-- $2 text: postgres.durability. $3 bigint: our clock, in milliseconds since 1970. $4 bigint: how far the clocks may be apart (0: any).
-- Columns: name, verdict (0 good, 1 to look at, 2 failed), what is so, remedy. Locks: none.
WITH s AS (
  SELECT current_setting('server_version_num')::bigint / 10000 AS version,
         current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
           - (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend') AS free,
         (SELECT string_agg(name || '=' || setting, ', ' ORDER BY name) FROM pg_catalog.pg_settings
           WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes') AND setting = 'off') AS off,
         pg_is_in_recovery() AS is_standby, current_setting('default_transaction_read_only')::boolean AS is_read_only,
         abs((extract(epoch FROM clock_timestamp()) * 1000)::bigint - $3::bigint) AS apart_ms,
         coalesce(inet_client_addr() <> '127.0.0.1' AND inet_client_addr() <> '::1', false) AS is_remote,
         coalesce((SELECT ssl FROM pg_catalog.pg_stat_ssl WHERE pid = pg_backend_pid()), false) AS has_tls
)
SELECT 'postgres_version', CASE WHEN version < 15 THEN 2 ELSE 0 END, 'PostgreSQL ' || version, 'PostgreSQL 15 or newer is needed'
  FROM s
UNION ALL
SELECT 'postgres_writable', CASE WHEN is_standby OR is_read_only THEN 2 ELSE 0 END,
       CASE WHEN is_standby THEN 'a standby, on which no pool can work' WHEN is_read_only THEN 'default_transaction_read_only is on' ELSE 'it takes writes' END,
       'name the primary in postgres.url, or set default_transaction_read_only to off'
  FROM s
UNION ALL
SELECT 'postgres_durability', CASE WHEN off IS NULL THEN 0 WHEN $2::text = 'any' THEN 1 ELSE 2 END,
       coalesce(off, 'fsync, full_page_writes and synchronous_commit are on'),
       'set it to on: a crash of the server loses what was committed'
  FROM s
UNION ALL
SELECT 'postgres_connections', CASE WHEN free < $1::bigint THEN 2 WHEN free < 2 * $1::bigint THEN 1 ELSE 0 END,
       format('%s connections are free, a pool of these settings takes %s', free, $1::bigint),
       'raise max_connections, or lower pool.workers'
  FROM s
UNION ALL
SELECT 'postgres_transport', CASE WHEN has_tls OR NOT is_remote THEN 0 ELSE 1 END,
       CASE WHEN has_tls THEN 'TLS' WHEN is_remote THEN 'money travels unencrypted between two machines'
            ELSE 'on this machine, without TLS' END, 'use sslmode=verify-full (docs/operate.md)'
  FROM s
UNION ALL
SELECT 'postgres_clock', CASE WHEN $4::bigint > 0 AND apart_ms > $4::bigint THEN 2 WHEN apart_ms > 1000 THEN 1 ELSE 0 END,
       apart_ms || ' ms from ours', 'put both right by NTP: PostgreSQL''s clock decides what is due'
  FROM s

-- Of the server and this session. Locks: none. Columns: server_version_num, connections that are free for this role,
-- is_super (1: superuser, or replication or row security is passed over), clock in microseconds since 1970,
-- is_remote (1: over TCP from another machine), has_tls, has_commit_times (1: track_commit_timestamp is on), autovacuum.
SELECT current_setting('server_version_num')::bigint AS version,
       current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
         - (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend') AS free,
       (SELECT (rolsuper OR rolbypassrls)::int::bigint FROM pg_catalog.pg_roles WHERE rolname = current_user) AS is_super,
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS clock_us,
       (coalesce(inet_client_addr() <> '127.0.0.1' AND inet_client_addr() <> '::1', false))::int::bigint AS is_remote,
       coalesce((SELECT ssl::int::bigint FROM pg_catalog.pg_stat_ssl WHERE pid = pg_backend_pid()), 0) AS has_tls,
       (current_setting('autovacuum') = 'on')::int::bigint AS has_autovacuum

-- Settings of the server without which no rate means anything. Columns: name, value as SHOW writes it. Locks: none.
SELECT name, current_setting(name)
  FROM pg_settings
 WHERE name IN ('server_version', 'fsync', 'synchronous_commit', 'shared_buffers', 'full_page_writes',
                'wal_compression', 'max_wal_size', 'checkpoint_timeout', 'huge_pages')
 ORDER BY name

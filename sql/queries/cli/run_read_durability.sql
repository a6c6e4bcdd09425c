-- The settings of this session with which COMMIT returns before the data is on disk, as text; empty when there are none.
-- No parameters. Columns: text.
SELECT coalesce(string_agg(name || '=' || setting, ', ' ORDER BY name), '')
  FROM pg_catalog.pg_settings
 WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes') AND setting = 'off'

-- The settings of this session that make COMMIT mean less than on the disk, as words; empty when there are none.
-- No parameters. Columns: text.
SELECT coalesce(string_agg(name || '=' || setting, ', ' ORDER BY name), '')
  FROM pg_catalog.pg_settings
 WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes') AND setting = 'off'

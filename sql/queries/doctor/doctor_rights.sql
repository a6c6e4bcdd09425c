-- The rights of this role. Locks: none. Columns: what it lacks as a worker, and what it may write beside the functions, each as
-- text, empty for nothing.
SELECT coalesce((SELECT string_agg(f.name, ', ') FROM (VALUES ('apply_charges'), ('apply_orders'), ('claim_users'),
                   ('claim_stock'), ('log_incident'), ('report_worker'), ('report_audit')) AS f (name)
                  WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_proc AS p
                                     WHERE p.pronamespace = current_schema()::regnamespace AND p.proname = f.name
                                       AND has_function_privilege(p.oid, 'EXECUTE'))), '')
       || coalesce((SELECT string_agg(t.name, ', ') FROM (VALUES ('subscriptions'), ('orders'), ('users'), ('stock')) AS t (name)
                     WHERE NOT has_table_privilege(t.name, 'SELECT')), '') AS lacks,
       coalesce((SELECT string_agg(t.name, ', ') FROM (VALUES ('charges'), ('transfers'), ('stock_movements'), ('users'),
                   ('subscriptions'), ('stock')) AS t (name)
                  WHERE has_table_privilege(t.name, 'INSERT, UPDATE, DELETE')), '') AS writes

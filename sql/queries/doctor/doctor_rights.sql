-- The rights of this role as `doctor` finds them. Locks: none. Columns as of doctor_server.
SELECT 'role_rights', CASE WHEN lacks <> '' THEN 2 WHEN is_super OR writes <> '' THEN 1 ELSE 0 END,
       CASE WHEN lacks <> '' THEN 'it may not use ' || lacks
            WHEN is_super THEN 'it is a superuser: no constraint or grant binds it'
            WHEN writes <> '' THEN format('it may write %s beside the functions', writes)
            ELSE 'it may do the work of a worker and no more' END,
       CASE WHEN lacks <> '' THEN 'run as a member of ledgerlock_worker'
            ELSE 'run as a member of ledgerlock_worker, and nothing else' END
  FROM (SELECT coalesce((SELECT string_agg(f.name, ', ')
                           FROM (VALUES ('apply_charges'), ('apply_orders'), ('claim_users'), ('claim_stock'), ('log_incident'),
                                        ('report_worker'), ('report_audit')) AS f (name)
                          WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_proc AS p
                                             WHERE p.pronamespace = current_schema()::regnamespace AND p.proname = f.name
                                               AND has_function_privilege(p.oid, 'EXECUTE'))), '')
               || coalesce((SELECT string_agg(t.name, ', ') FROM (VALUES ('subscriptions'), ('orders'), ('users'), ('stock')) AS t (name)
                             WHERE NOT has_table_privilege(t.name, 'SELECT')), '') AS lacks,
               coalesce((SELECT string_agg(t.name, ', ') FROM (VALUES ('charges'), ('transfers'), ('stock_movements'), ('users'),
                           ('subscriptions'), ('stock')) AS t (name)
                          WHERE has_table_privilege(t.name, 'INSERT, UPDATE, DELETE')), '') AS writes,
               (SELECT rolsuper OR rolbypassrls FROM pg_catalog.pg_roles WHERE rolname = current_user) AS is_super) AS r

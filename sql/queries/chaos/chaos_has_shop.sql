-- If a shop of a demonstration (tools/shop) has made its tables, and this role may use them. A statement on tables that are not there
-- would be an error in the server's log each second. Columns: bool. Locks: none.
SELECT count(*) = 2
  FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = 'ledgerlock_plain' AND has_schema_privilege(n.oid, 'USAGE')
   AND ((c.relname = 'figures' AND has_table_privilege(c.oid, 'SELECT')) OR (c.relname = 'faults' AND has_table_privilege(c.oid, 'INSERT')))

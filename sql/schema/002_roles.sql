-- 002: roles, by what people and programs do. The role that migrates owns everything and may do all of it. A worker reads
-- the tables, and writes through functions alone (sql/functions), which check what it gives and run with the owner's rights.
-- Roles belong to the whole server: they may exist already, made by an administrator or for another database.
--   ledgerlock_worker     serves: charges and sells what is due, through functions
--   ledgerlock_shop       places and cancels orders, asks for their state
--   ledgerlock_cashier    takes deposits, pays out
--   ledgerlock_warehouse  receives deliveries, adjusts stock
--   ledgerlock_support    cancels and resumes, refunds and writes off, takes returns, releases what is parked, reads
--   ledgerlock_reader     reads: audit, status, report
-- The functions of sql/functions grant themselves to these roles. PUBLIC has nothing.
DO $$
DECLARE
  role_name text;
BEGIN
  FOREACH role_name IN ARRAY ARRAY['ledgerlock_worker', 'ledgerlock_shop', 'ledgerlock_cashier', 'ledgerlock_warehouse',
                                   'ledgerlock_support', 'ledgerlock_reader'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role_name) THEN
      BEGIN
        EXECUTE format('CREATE ROLE %I NOLOGIN', role_name);
      EXCEPTION
        WHEN duplicate_object OR unique_violation THEN NULL; -- made by another migration a moment ago
        WHEN insufficient_privilege THEN
          RAISE EXCEPTION 'role "%" does not exist and this user may not create it', role_name
            USING HINT = format('Let an administrator run: CREATE ROLE %I LOGIN', role_name);
      END;
    END IF;
  END LOOP;
END $$;

-- Several schemas are several shops; the roles are the same in each.
DO $$
BEGIN
  EXECUTE format('REVOKE ALL ON SCHEMA %I FROM PUBLIC', current_schema());
  EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA %I FROM PUBLIC', current_schema());
  EXECUTE format('GRANT USAGE ON SCHEMA %I TO ledgerlock_worker, ledgerlock_shop, ledgerlock_cashier, ledgerlock_warehouse,
                                              ledgerlock_support, ledgerlock_reader', current_schema());
  EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader',
                 current_schema());
END $$;
REVOKE ALL ON DOMAIN currency FROM PUBLIC;
GRANT EXECUTE ON FUNCTION period_start, first_open TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;

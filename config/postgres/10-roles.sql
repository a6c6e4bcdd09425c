-- The roles of PostgreSQL, and their rights on this database. A superuser runs it in each database that ledgerlock is to have,
-- before the first `ledgerlock migrate`; it may run again:  psql -X -d ledgerlock -f config/postgres/10-roles.sql
-- So may the owner of the database, if that role may make roles. Roles belong to the whole server: several databases share them.
-- The roles have no password until one is set (\password ledgerlock_worker), so with scram-sha-256 nobody comes in before.
--   ledgerlock_owner      owns schema, tables and functions; nobody can log in as it
--   ledgerlock_migrate    logs in to migrate, seed, import or repair, and acts as the owner in every session
--   the others            see sql/schema/002_roles.sql
\set ON_ERROR_STOP on
SET client_min_messages = warning; -- what a second database finds done is no news
DO $$
DECLARE
  role_name text;
  powers    text; -- that it has and must not have
BEGIN
  FOREACH role_name IN ARRAY ARRAY['owner', 'migrate', 'worker', 'shop', 'cashier', 'warehouse', 'support', 'reader'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'ledgerlock_' || role_name) THEN
      EXECUTE format('CREATE ROLE %I', 'ledgerlock_' || role_name);
    END IF;
    SELECT concat_ws(' ', CASE WHEN rolsuper THEN 'NOSUPERUSER' END, CASE WHEN rolcreatedb THEN 'NOCREATEDB' END,
                     CASE WHEN rolcreaterole THEN 'NOCREATEROLE' END, CASE WHEN rolreplication THEN 'NOREPLICATION' END,
                     CASE WHEN rolbypassrls THEN 'NOBYPASSRLS' END)
      INTO powers FROM pg_roles WHERE rolname = 'ledgerlock_' || role_name;
    EXECUTE format('ALTER ROLE %I %s %s', 'ledgerlock_' || role_name, powers,
                   CASE role_name WHEN 'owner' THEN 'NOLOGIN' ELSE 'LOGIN' END);
  END LOOP;
END $$;
GRANT ledgerlock_owner TO ledgerlock_migrate;
ALTER ROLE ledgerlock_migrate SET role = 'ledgerlock_owner';

-- PUBLIC may neither connect nor make temporary tables.
REVOKE ALL ON DATABASE :"DBNAME" FROM PUBLIC;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT CONNECT ON DATABASE :"DBNAME" TO ledgerlock_migrate, ledgerlock_worker, ledgerlock_shop, ledgerlock_cashier,
                                       ledgerlock_warehouse, ledgerlock_support, ledgerlock_reader;
GRANT CREATE, TEMPORARY ON DATABASE :"DBNAME" TO ledgerlock_owner;

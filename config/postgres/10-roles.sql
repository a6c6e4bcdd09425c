-- The roles of PostgreSQL, and their rights on this database. A superuser runs it in each database that ledgerlock is to have,
-- before the first `ledgerlock migrate`; it may run again:  psql -X -d ledgerlock -f config/postgres/10-roles.sql
-- So may the owner of the database, if that role may make roles. Roles belong to the whole server: several databases share them,
-- unless each has a prefix of its own, which postgres.role_prefix names, too:
--   psql -X -v prefix=shop_a -d shop_a -f config/postgres/10-roles.sql      makes shop_a_worker, and so on
-- The roles have no password until one is set (\password ledgerlock_worker), so with scram-sha-256 nobody comes in before.
--   ledgerlock_owner      owns schema, tables and functions; nobody can log in as it
--   ledgerlock_migrate    logs in to migrate, seed, import or repair, and acts as the owner in every session
--   the others            see sql/schema/002_roles.sql
\set ON_ERROR_STOP on
\if :{?prefix}
\else
  \set prefix ledgerlock
\endif
\set owner :prefix _owner
\set migrate :prefix _migrate
\set worker :prefix _worker
\set shop :prefix _shop
\set cashier :prefix _cashier
\set warehouse :prefix _warehouse
\set support :prefix _support
\set reader :prefix _reader
SET client_min_messages = warning; -- what a second database finds done is no news
SET ledgerlock.role_prefix = :'prefix';
DO $$
DECLARE
  prefix    text := current_setting('ledgerlock.role_prefix');
  role_name text;
  powers    text; -- that it has and must not have
BEGIN
  IF prefix !~ '^[a-z][a-z0-9_]{0,29}$' OR prefix ~ '^pg(_|$)' THEN
    RAISE EXCEPTION 'the prefix "%" is not one of small letters, digits and _, which begins with a letter and has at most 30', prefix;
  END IF;
  FOREACH role_name IN ARRAY ARRAY['owner', 'migrate', 'worker', 'shop', 'cashier', 'warehouse', 'support', 'reader'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = prefix || '_' || role_name) THEN
      EXECUTE format('CREATE ROLE %I', prefix || '_' || role_name);
    END IF;
    SELECT concat_ws(' ', CASE WHEN rolsuper THEN 'NOSUPERUSER' END, CASE WHEN rolcreatedb THEN 'NOCREATEDB' END,
                     CASE WHEN rolcreaterole THEN 'NOCREATEROLE' END, CASE WHEN rolreplication THEN 'NOREPLICATION' END,
                     CASE WHEN rolbypassrls THEN 'NOBYPASSRLS' END)
      INTO powers FROM pg_roles WHERE rolname = prefix || '_' || role_name;
    EXECUTE format('ALTER ROLE %I %s %s', prefix || '_' || role_name, powers,
                   CASE role_name WHEN 'owner' THEN 'NOLOGIN' ELSE 'LOGIN' END);
  END LOOP;
END $$;
GRANT :"owner" TO :"migrate";
ALTER ROLE :"migrate" SET role = :'owner';

-- PUBLIC may neither connect nor make temporary tables.
REVOKE ALL ON DATABASE :"DBNAME" FROM PUBLIC;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT CONNECT ON DATABASE :"DBNAME" TO :"migrate", :"worker", :"shop", :"cashier", :"warehouse", :"support", :"reader";
GRANT CREATE, TEMPORARY ON DATABASE :"DBNAME" TO :"owner";

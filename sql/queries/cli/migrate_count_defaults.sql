-- migrate_count_defaults: how many default privileges give, or keep from, somebody a right on what this role makes in this database.
-- No parameters. No lock.
SELECT count(*)
  FROM pg_catalog.pg_default_acl
 WHERE defaclrole = (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user)
   AND defaclnamespace IN (0, current_schema()::regnamespace);

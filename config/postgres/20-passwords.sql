-- Of docker-compose.yml: the passwords of the roles that its services log in as. Runs once, when the database is created.
\set ON_ERROR_STOP on
\set migrate `cat /run/secrets/postgres_owner_password`
\set worker `cat /run/secrets/postgres_worker_password`
ALTER ROLE ledgerlock_migrate PASSWORD :'migrate';
ALTER ROLE ledgerlock_worker PASSWORD :'worker';

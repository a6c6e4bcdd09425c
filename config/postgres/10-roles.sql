-- Runs once, when the database is made: the role of the workers, with its own password. What it may do is
-- granted by `ledgerlock migrate`.
\set password `cat /run/secrets/postgres_worker_password`
CREATE ROLE ledgerlock_worker LOGIN PASSWORD :'password';

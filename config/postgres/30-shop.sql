-- Of docker-compose.yml: the mark that ledgerlock-shop may fill and empty this database again and again.
\set ON_ERROR_STOP on
CREATE SCHEMA ledgerlock_shop AUTHORIZATION ledgerlock_owner;

-- 003: a migration of a program to come, for the test of an upgrade: programs before it can live with it.
ALTER TABLE charges ADD COLUMN note text;

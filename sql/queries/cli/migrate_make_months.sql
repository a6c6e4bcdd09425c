-- migrate_make_months: makes the months from the last one to the same one of next year, by the database's clock.
-- No parameters. Column: how many were made. Locks: SHARE UPDATE EXCLUSIVE on the tables with months.
SELECT make_months(greatest(now() - interval '1 month', first_open()), now() + interval '12 months') AS made;

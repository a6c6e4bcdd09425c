-- If this database may be filled and emptied by the shop: its owner made the schema that says so. And if the unguarded tables are
-- there. The name of the schema is no role's, and is written so that none is taken for it. Columns: two, bool. Locks: none.
SELECT to_regnamespace('ledgerlock' || '_shop') IS NOT NULL, to_regnamespace('ledgerlock_plain') IS NOT NULL

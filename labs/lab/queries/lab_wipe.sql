-- Empties the laboratory's own tables. Columns: none. Locks: ACCESS EXCLUSIVE on each.
TRUNCATE ledgerlock_lab.lab_items, ledgerlock_lab.lab_charges, ledgerlock_lab.lab_sales

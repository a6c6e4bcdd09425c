-- Counts a season that begins. Columns: none. Locks: the row.
UPDATE ledgerlock_plain.figures
   SET seasons = seasons + 1, since = clock_timestamp(), charges = 0, charged_twice = 0, oversold = 0, wrong_totals = 0

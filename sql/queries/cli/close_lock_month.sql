-- Keeps writers out of a month that is being closed, and whoever writes what is older than a day; readers go on. close-month puts the
-- month in place of YYYY_MM. No parameters, no columns. Locks: SHARE ROW EXCLUSIVE on the partition of the month and on seals.
LOCK TABLE seals, charges_YYYY_MM IN SHARE ROW EXCLUSIVE MODE

-- Keeps writers out of a month that is being closed; readers go on. close-month puts the month in place of YYYY_MM.
-- No parameters, no columns. Locks: SHARE ROW EXCLUSIVE on the partition of the month.
LOCK TABLE charges_YYYY_MM IN SHARE ROW EXCLUSIVE MODE

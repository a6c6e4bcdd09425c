-- Asks the doors to notify: from the moment that this waits, announce_work does. One pool at a time asks, the
-- notification reaches all. Returns when every transaction that did not notify is over, so whoever looks
-- now sees its work; lock_timeout ends the waiting for one that its client keeps open.
-- Columns: whether it is we who ask. Locks: two advisory ones, of the session, until bell_leave.
SELECT CASE WHEN pg_try_advisory_lock(7810482635) THEN pg_advisory_lock(7810482636) IS NOT NULL ELSE false END

-- announce_work(): wakes the pools that sleep. Every door that makes something due calls it; so may whoever inserts
-- subscriptions or orders by hand. A hint: without it a pool finds the work at its next poll.
-- NOTIFY holds a lock of the whole database server until its transaction is on disk, so it would make the doors
-- wait for each other. It is sent only while a pool sleeps: then its listener holds, or waits for, the lock that is
-- tried here, and is told at commit. While all pools are awake the doors share the lock, each until its transaction
-- ends, and none waits; the listener gets it when all of them are over, and looks once more for what they brought.
-- (Named so that it is made before the doors that call it.)
CREATE OR REPLACE FUNCTION ledgerlock.announce_work()
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT pg_catalog.pg_try_advisory_xact_lock_shared(7810482636) THEN
    PERFORM pg_catalog.pg_notify('ledgerlock_due', '');
  END IF;
END $$;
COMMENT ON FUNCTION ledgerlock.announce_work IS
  'Wakes the pools that sleep, when this transaction commits. Called by the doors; by hand after inserting work.';
REVOKE ALL ON FUNCTION ledgerlock.announce_work FROM PUBLIC;

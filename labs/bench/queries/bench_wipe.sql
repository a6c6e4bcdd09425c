-- Empties every table that a benchmark fills or that a pool writes. Locks: ACCESS EXCLUSIVE on each.
DO $$
BEGIN -- events last, as all others lock them, and without the trigger, which lets nobody empty them
  TRUNCATE users, subscriptions, charges, payments, stock, orders,
           order_lines, lock_incidents,
           workers, batches, contracts, wallet_entries, stock_entries, subscription_terms;
  ALTER TABLE events DISABLE TRIGGER events_are_never_emptied;
  TRUNCATE events;
  ALTER TABLE events ENABLE TRIGGER events_are_never_emptied;
END $$

-- Forgets a season: all rows of both sides, in one step. Locks: ACCESS EXCLUSIVE on each table, so an audit that has begun ends before.
DO $$
BEGIN -- events are never emptied otherwise, not even to repair them
  ALTER TABLE events DISABLE TRIGGER events_are_never_emptied;
  TRUNCATE users, subscriptions, charges, stock, orders, order_lines, lock_incidents, batches,
           events, wallet_entries, stock_entries, contracts, subscription_terms,
           ledgerlock_plain.wallets, ledgerlock_plain.stock, ledgerlock_plain.items, ledgerlock_plain.charges;
  ALTER TABLE events ENABLE TRIGGER events_are_never_emptied;
END $$

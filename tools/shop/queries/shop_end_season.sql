-- Forgets a season: all rows of both sides, in one step. Locks: ACCESS EXCLUSIVE on each table, so an audit that has begun ends before.
TRUNCATE users, subscriptions, charges, stock, orders, order_lines, lock_incidents, batches,
         subscription_journal, order_journal, stock_journal, deposits, contracts, deliveries, subscription_terms, signups, prorations,
         closures, corrections, write_offs, adjustments, returns,
         ledgerlock_plain.wallets, ledgerlock_plain.stock, ledgerlock_plain.items, ledgerlock_plain.charges

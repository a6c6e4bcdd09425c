-- At the end of a transaction that brought work in: wakes the pools that sleep. Columns: none.
SELECT ledgerlock.announce_work()

-- Charges captured and orders decided so far. Columns: count. Locks: none.
SELECT (SELECT count(*) FROM ledgerlock.charges WHERE state = 'captured')
       + (SELECT count(*) FROM ledgerlock.orders WHERE state <> 'pending')

-- The faults that were asked for since the last one. $1 bigint: that one; null: none counts, only the last number is read.
-- Columns: action (text), fault_id, lasts_ms. Locks: none.
SELECT action, fault_id, lasts_ms FROM ledgerlock_plain.faults WHERE fault_id > $1::bigint
 UNION ALL
SELECT '', coalesce(max(fault_id), 0), 0 FROM ledgerlock_plain.faults HAVING $1::bigint IS NULL
 ORDER BY 2

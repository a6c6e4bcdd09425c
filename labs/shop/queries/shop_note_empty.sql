-- Notes since when nothing is left of a SKU on the unguarded side. Columns: none. Locks: the rows.
UPDATE ledgerlock_plain.stock SET out_at = CASE WHEN on_hand < 1 THEN clock_timestamp() END WHERE (on_hand < 1) <> (out_at IS NOT NULL)

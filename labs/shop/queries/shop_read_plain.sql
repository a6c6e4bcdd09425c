-- The outcome on the unguarded side of a demonstration (labs/shop). Columns: charges, charged_twice, oversold, wrong_totals,
-- seasons, since in milliseconds since 1970. Locks: none.
SELECT charges, charged_twice, oversold, wrong_totals, seasons, (extract(epoch FROM since) * 1000)::bigint AS since_ms FROM ledgerlock_plain.figures

-- The units that moved between this cell and others. $1 int8: 1: those that came; 0: those that went. Columns: cell int8 (the other),
-- sku text, key text, qty int8 (above zero), seconds int8 since then. Locks: none.
SELECT e.cell::bigint, s.sku, e.idempotency_key, abs(e.qty), greatest(extract(epoch FROM now() - e.recorded_at), 0)::bigint
  FROM stock_entries AS e JOIN stock AS s USING (sku_id)
 WHERE e.cell IS NOT NULL AND (e.qty > 0) = ($1::bigint <> 0)
 ORDER BY e.entry_id

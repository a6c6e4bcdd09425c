-- No charge, entry of the ledgers or decision is dated after now, and none at no time at all.
-- Now is the later one of the audit's now and a second behind the clock, which is read when this begins: a transaction may have begun long
-- before its snapshot.
WITH clock AS (
  SELECT greatest(nullif(current_setting('ledgerlock.now', true), '')::timestamptz, clock_timestamp() + interval '1 second') AS now
), ahead AS MATERIALIZED (
  SELECT format('subscription %s period %s', subscription_id, period_no) AS what, charged_at AS at FROM open_charges
   WHERE charged_at > (SELECT now FROM clock) OR charged_at = '-infinity'
   UNION ALL
  SELECT format('%s %s/%s', kind, source, leg), moved_at FROM open_ledger
   WHERE moved_at > (SELECT now FROM clock) OR moved_at = '-infinity'
   UNION ALL
  SELECT format('sku %s %s %s', sku_id, kind, source), moved_at FROM open_stock_ledger
   WHERE moved_at > (SELECT now FROM clock) OR moved_at = '-infinity'
   UNION ALL
  SELECT format('order %s', order_id), coalesce(decided_at, placed_at) FROM orders
   WHERE decided_at > (SELECT now FROM clock) OR NOT isfinite(placed_at)
   UNION ALL
  SELECT format('batch %s', batch_id), at FROM batches
   WHERE at > (SELECT now FROM clock) OR at = '-infinity')
SELECT what, 'at ' || at AS detail
  FROM ahead
 ORDER BY what;

-- Takes out order lines of a wallet or a SKU in another currency. $1 text currency of the file. Locks: none.
WITH judged AS (
  SELECT i.line,
         CASE WHEN u.currency <> $1::text
              THEN format('customer "%s" has a wallet in %s, not in %s', i.customer_ref, u.currency, $1::text)
              ELSE format('SKU "%s" is sold in %s, not in %s', i.sku, s.currency, $1::text) END AS reason
    FROM pg_temp.import_orders AS i
    LEFT JOIN users AS u ON u.external_ref = i.customer_ref
    LEFT JOIN stock AS s ON s.sku = i.sku
   WHERE u.currency <> $1::text OR s.currency <> $1::text
), gone AS (
  DELETE FROM pg_temp.import_orders AS i USING judged AS j WHERE i.line = j.line
  RETURNING i.line, j.reason, i.raw
)
INSERT INTO pg_temp.import_bad (kind, line, reason, raw) SELECT 'orders', line, reason, raw FROM gone

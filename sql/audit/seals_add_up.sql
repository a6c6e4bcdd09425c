-- Every month before the first open one is sealed whole, and the sealed wallets and stock add up to the seals.
WITH month AS (
  SELECT m.month, coalesce(bool_or(s.table_name = 'months'), false) AS is_sealed,
         count(*) FILTER (WHERE s.table_name <> 'months') - coalesce(sum(s.row_ct) FILTER (WHERE s.table_name = 'months'), 0) AS lines,
         coalesce(sum(s.row_ct) FILTER (WHERE s.table_name <> 'months'), 0)
           - coalesce(sum(s.total) FILTER (WHERE s.table_name = 'months'), 0) AS row_ct,
         coalesce(sum(s.checksum) FILTER (WHERE s.table_name <> 'months'), 0)
           - coalesce(sum(s.checksum) FILTER (WHERE s.table_name = 'months'), 0) AS checksum
    FROM months AS m LEFT JOIN seals AS s USING (month)
   WHERE m.month < (SELECT first_open() AT TIME ZONE 'UTC')
   GROUP BY m.month
), part AS (
  SELECT 'wallets in ' || currency AS what,
         CASE WHEN kind LIKE '%-wallet' THEN total ELSE 0 END - CASE WHEN kind LIKE '% wallet-%' THEN total ELSE 0 END AS sealed, 0 AS summed
    FROM seals WHERE table_name = 'ledger'
   UNION ALL
  SELECT 'wallets in ' || currency, 0, net_minor FROM sealed_wallets
   UNION ALL
  SELECT 'units by ' || kind, CASE kind WHEN 'sale' THEN -total ELSE total END, 0 FROM seals WHERE table_name = 'stock_ledger'
   UNION ALL
  SELECT 'units by delivery', 0, received FROM sealed_stock
   UNION ALL
  SELECT 'units by return', 0, returned FROM sealed_stock
   UNION ALL
  SELECT 'units by adjustment', 0, adjusted FROM sealed_stock
   UNION ALL
  SELECT 'units by sale', 0, sold FROM sealed_stock
   UNION ALL
  SELECT 'charges of ' || month, CASE table_name WHEN 'charges' THEN total ELSE 0 END,
         CASE table_name WHEN 'charges' THEN 0 ELSE total END
    FROM seals
   WHERE (table_name = 'charges' AND kind IN ('captured', 'paid')) OR (table_name = 'ledger' AND (kind LIKE 'charge %' OR kind LIKE 'card %'))
)
SELECT to_char(month, 'YYYY-MM') AS what, CASE WHEN is_sealed THEN 'its seals differ from their sum' ELSE 'it is not sealed' END AS detail
  FROM month
 WHERE NOT is_sealed OR lines <> 0 OR row_ct <> 0 OR checksum <> 0
 UNION ALL
SELECT what, format('seals %s, summed up %s', sum(sealed), sum(summed))
  FROM part
 GROUP BY what
HAVING sum(sealed) <> sum(summed)
 ORDER BY what;

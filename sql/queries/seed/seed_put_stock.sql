-- Makes all SKUs. The first fortieth, at least one, has a tenth of what the orders ask for; a tenth of the others has too little.
-- Columns: units bigint. Locks: the new rows.
WITH asked AS (
  SELECT sku_id, sum(qty)::bigint AS qty FROM pg_temp.seed_lines GROUP BY sku_id
), made AS (
  INSERT INTO stock (sku_id, sku, initial_qty, on_hand, unit_price_minor, currency)
  SELECT w.base + n, 'SKU-' || lpad(n::text, greatest(length(n::text), 5), '0'), held.qty, held.qty, 199 + 50 * pg_temp.draw(w.seed, n, 40, 120), w.currency
    FROM pg_temp.seed_of AS w, generate_series(1, w.skus) AS n
    LEFT JOIN asked AS a ON a.sku_id = n,
         LATERAL (SELECT CASE WHEN n <= greatest(w.skus / 40, 1) THEN greatest(coalesce(a.qty, 0) / 10, 1)
                              WHEN pg_temp.draw(w.seed, n, 41, 100) < 10 THEN coalesce(a.qty, 0) * 7 / 10
                              ELSE 2 * coalesce(a.qty, 0) + 20 + pg_temp.draw(w.seed, n, 42, 100) END AS qty) AS held
   ORDER BY n
  RETURNING initial_qty
)
SELECT coalesce(sum(initial_qty), 0)::bigint FROM made

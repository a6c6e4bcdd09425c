-- Makes lines of orders up, of one to four SKUs; how often SKU n is ordered falls about as 1 / n (Zipf). $1 and $2 bigint: of the orders
-- above $1, up to $2. Locks: none.
INSERT INTO pg_temp.seed_lines (order_id, user_id, sku_id, qty)
SELECT n, 1 + pg_temp.draw(w.seed, n, 11, w.users), drawn.sku_id,
       max((ARRAY[1, 1, 1, 1, 1, 2, 2, 3, 4, 6])[1 + pg_temp.draw(w.seed, n, 20 + k, 10)])
  FROM pg_temp.seed_of AS w, generate_series($1::bigint + 1, $2) AS n,
       generate_series(1, (ARRAY[1, 1, 1, 1, 2, 2, 2, 3, 3, 4])[1 + pg_temp.draw(w.seed, n, 12, 10)]) AS k,
       LATERAL (SELECT floor(exp(ln(w.skus + 1) * pg_temp.draw(w.seed, n, 30 + k, 1073741824) / 1073741824.0))::bigint AS sku_id) AS drawn
 GROUP BY n, w.seed, w.users, drawn.sku_id

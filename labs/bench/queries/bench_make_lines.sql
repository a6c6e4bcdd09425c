-- Draws the lines of orders 1 to n: the SKU of rank k is asked for 1/k as often as the first (Zipf, exponent 1).
-- Ranks are scattered over the ids, so that what sells best has no order. Always the same draw.
-- $1 bigint: n. $2 bigint: SKUs. $3 bigint: most lines of an order. $4 bigint: most pieces of a line.
-- Columns: none. Locks: none.
WITH zipf AS (
  SELECT array_agg(reached / whole ORDER BY rank) AS reached
    FROM (SELECT rank, sum(1::float8 / rank) OVER (ORDER BY rank) AS reached, sum(1::float8 / rank) OVER () AS whole
            FROM generate_series(1, $2::bigint) AS rank) AS ranks
), drawn AS (
  SELECT o AS order_id, hashint8extended(o * 16 + line, 3) & 1023 AS piece,
         width_bucket((hashint8extended(o * 16 + line, 2) & 4294967295) / 4294967296.0::float8, zipf.reached) AS rank
    FROM zipf, generate_series(1, $1::bigint) AS o,
         generate_series(1, 1 + (hashint8extended(o, 4) & 1023) % $3::bigint) AS line
)
INSERT INTO pg_temp.bench_lines (order_id, sku_id, unit_price_minor, qty)
SELECT order_id, sku_id, 100 + sku_id % 900, sum(qty)
  FROM (SELECT order_id, rank * 7919 % $2 + 1 AS sku_id, 1 + piece % $4::bigint AS qty FROM drawn) AS lines
 GROUP BY order_id, sku_id

-- One row per order of the file, numbered in the order of their numbers to be: all lines with its order_ref and
-- customer_ref. The hash is of the lines summed per
-- SKU and price, in order, so that the order of lines in a file does not matter. Locks: none.
INSERT INTO pg_temp.import_heads (order_ref, customer_ref, placed_at, no, request_hash)
SELECT order_ref, customer_ref, min(placed_at) AS placed_at,
       row_number() OVER (ORDER BY min(placed_at), order_ref, customer_ref) AS no,
       sha256(convert_to(jsonb_agg(jsonb_build_object('sku', sku, 'qty', qty, 'unit_price_minor', unit_price)
                                   ORDER BY sku, unit_price)::text, 'UTF8')) AS request_hash
  FROM (SELECT order_ref, customer_ref, sku, unit_price, sum(quantity)::bigint AS qty, min(placed_at) AS placed_at
          FROM pg_temp.import_orders
         GROUP BY order_ref, customer_ref, sku, unit_price) AS summed
 GROUP BY order_ref, customer_ref

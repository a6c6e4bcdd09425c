-- Sends a twentieth of the orders a second time through place_order. $1 and $2 bigint: of the orders above $1, up to $2.
-- Columns: sent bigint, same bigint (got their order back). Locks: none; nothing is written.
-- Serves: the same key and body are the same order.
SELECT count(*), count(*) FILTER (WHERE again = order_id)
  FROM (SELECT o.order_id, place_order(o.user_id, o.idempotency_key, asked.lines, o.placed_at) AS again
          FROM pg_temp.seed_of AS w, orders AS o,
               LATERAL (SELECT jsonb_agg(jsonb_build_object('sku', s.sku, 'qty', l.qty)) AS lines
                          FROM order_lines AS l JOIN stock AS s USING (sku_id) WHERE l.order_id = o.order_id) AS asked
         WHERE o.order_id > w.base + $1 AND o.order_id <= w.base + $2 AND pg_temp.draw(w.seed, o.order_id - w.base, 13, 100) < 5 OFFSET 0) AS sent

-- Sends some orders a second time through place_order. Columns: sent bigint, same bigint (got their order back).
-- Locks: none; nothing is written. Serves: the same key and body are the same order.
SELECT count(*), count(*) FILTER (WHERE again = order_id)
  FROM (SELECT order_id, place_order(user_id, key, lines, placed_at) AS again
          FROM pg_temp.seed_orders WHERE is_sent_twice OFFSET 0) AS sent

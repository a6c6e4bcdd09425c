-- waits_of_order(order): what it waits for, but for row locks and locks in Redis. No row: there is no such order.
CREATE OR REPLACE FUNCTION waits_of_order(p_order_id bigint)
RETURNS TABLE ("for" text, detail text)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET timezone = 'UTC' AS $$
  WITH o AS (
    SELECT *, state = 'pending' AND placed_at <= now() AS is_due, to_char(placed_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS due_text
      FROM orders WHERE order_id = p_order_id
  ), line AS (
    SELECT DISTINCT l.sku_id FROM o JOIN order_lines AS l USING (order_id) WHERE o.is_due
  ), older AS (
    SELECT count(*) AS n, (array_agg(before.order_id ORDER BY before.placed_at, before.order_id))[1] AS order_id
      FROM o
      JOIN orders AS before ON before.state = 'pending' AND (before.placed_at, before.order_id) < (o.placed_at, o.order_id)
     WHERE o.is_due
       AND EXISTS (SELECT FROM order_lines AS l WHERE l.order_id = before.order_id AND l.sku_id IN (SELECT sku_id FROM line))
  )
  SELECT CASE WHEN is_due THEN 'a worker' WHEN state = 'pending' THEN 'its time' WHEN state = 'parked' THEN 'a person' WHEN state = 'paying' THEN 'a card' ELSE 'nothing' END AS for,
         CASE WHEN state = 'pending' THEN format('due %s %s', CASE WHEN is_due THEN 'since' ELSE 'at' END, due_text)
              WHEN state = 'parked' THEN format('parked: %s; ledgerlock parked release order:%s',
                                                coalesce((SELECT detail FROM lock_incidents
                                                           WHERE kind = 'parked' AND resource = 'order:' || o.order_id
                                                           ORDER BY incident_id DESC LIMIT 1), 'not in the journal'), order_id)
              WHEN state = 'paying' THEN wait_of_payment('payment', order_id, 0)
              ELSE format('it is %s', state) END AS detail
    FROM o
  UNION ALL
  SELECT 'an older order', format('order %s was placed before and wants a SKU of this one, too; %s such orders stand before it', order_id, n)
    FROM older WHERE n > 0
  UNION ALL
  SELECT 'its job', concat_ws(': ', format('%s is paused since %s by %s', p.job, to_char(p.since, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), p.paused_by),
                              nullif(p.reason, ''))
    FROM o, paused_jobs AS p WHERE o.is_due AND p.job = 'orders'
  UNION ALL
  SELECT 'a pool', 'no worker of orders has reported for ten seconds'
    FROM o
   WHERE o.is_due AND NOT EXISTS (SELECT FROM live_workers WHERE job = 'orders')
$$;
COMMENT ON FUNCTION waits_of_order IS
  'What an order waits for, but for locks. Errors: none of its own.';
REVOKE ALL ON FUNCTION waits_of_order FROM PUBLIC;
GRANT EXECUTE ON FUNCTION waits_of_order TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;

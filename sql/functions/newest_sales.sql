-- newest_sales(now, batches): the SKUs of which most units were sold in the five minutes before `now` (null: the clock), as far
-- as the newest batches of orders tell: at most eight, the most wanted first.
CREATE OR REPLACE FUNCTION newest_sales(p_now timestamptz, p_batches integer)
RETURNS TABLE (sku text, sold bigint, on_hand bigint, initial_qty bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  WITH newest AS MATERIALIZED (
    SELECT ids, at FROM (SELECT ids, at, periods FROM batches ORDER BY batch_id DESC LIMIT p_batches) AS last
     WHERE periods IS NULL AND at > coalesce(p_now, now()) - interval '5 minutes'
  ), sold AS (
    SELECT l.sku_id, sum(l.qty)::bigint AS sold
      FROM (SELECT DISTINCT unnest(ids) AS order_id FROM newest) AS decided
      JOIN orders AS o USING (order_id)
      JOIN order_lines AS l USING (order_id)
     WHERE o.state = 'fulfilled'
     GROUP BY l.sku_id ORDER BY sold DESC LIMIT 8
  )
  SELECT s.sku, m.sold, s.on_hand, s.initial_qty FROM sold AS m JOIN stock AS s USING (sku_id) ORDER BY m.sold DESC, s.sku
$$;
COMMENT ON FUNCTION newest_sales IS
  'The SKUs that were sold most in the last five minutes, at most eight: units sold, on hand, and the initial quantity. Errors: none of its own.';
REVOKE ALL ON FUNCTION newest_sales FROM PUBLIC;
GRANT EXECUTE ON FUNCTION newest_sales TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;

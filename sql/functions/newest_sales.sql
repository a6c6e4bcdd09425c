-- newest_sales(now, pages): the SKUs of which most units were sold in the five minutes before `now` (null: the clock), as far
-- as the sales lie in the last pages of each month: at most eight, the most wanted first.
CREATE OR REPLACE FUNCTION newest_sales(p_now timestamptz, p_pages integer)
RETURNS TABLE (sku text, sold bigint, on_hand bigint, initial_qty bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_part  regclass;
  v_parts text := 'SELECT NULL::bigint AS sku_id, 0::bigint AS qty WHERE false';
BEGIN
  FOR v_part IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'stock_movements'::regclass LOOP
    v_parts := v_parts || format(' UNION ALL SELECT sku_id, -qty FROM %s WHERE kind = ''sale'' AND moved_at > $1', v_part)
      || format(' AND ctid >= ''(%s,0)''', greatest(pg_relation_size(v_part) / current_setting('block_size')::bigint - p_pages, 0))
      ;
  END LOOP;
  RETURN QUERY EXECUTE format(
    'SELECT s.sku, m.sold::bigint, s.on_hand, s.initial_qty
       FROM (SELECT sku_id, sum(qty) AS sold FROM (%s) AS newest GROUP BY sku_id ORDER BY sold DESC LIMIT 8) AS m
       JOIN stock AS s USING (sku_id) ORDER BY m.sold DESC, s.sku', v_parts)
    USING coalesce(p_now, now()) - interval '5 minutes';
END $$;
COMMENT ON FUNCTION newest_sales IS
  'The SKUs that were sold most in the last five minutes, at most eight: units sold, on hand, and the initial quantity. Errors: none of its own.';
REVOKE ALL ON FUNCTION newest_sales FROM PUBLIC;
GRANT EXECUTE ON FUNCTION newest_sales TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;

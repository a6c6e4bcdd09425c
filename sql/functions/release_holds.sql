-- release_holds(orders, sold): units that were held for these orders are free again, those of the sold ones leave the stock. Users and
-- SKUs are locked. A hold that is not there breaks held_is_on_hand.
CREATE OR REPLACE FUNCTION release_holds(p_free bigint[], p_sold bigint[])
RETURNS void LANGUAGE sql SET search_path FROM CURRENT AS $$
  UPDATE stock AS s SET held = s.held - l.qty, on_hand = s.on_hand - l.sold
    FROM (SELECT sku_id, sum(qty)::bigint AS qty, coalesce(sum(qty) FILTER (WHERE order_id = ANY (p_sold)), 0)::bigint AS sold
            FROM order_lines WHERE order_id = ANY (p_free || p_sold)
           GROUP BY sku_id) AS l
   WHERE s.sku_id = l.sku_id
$$;
COMMENT ON FUNCTION release_holds IS 'Ends the holds of orders: units are free again, or sold.';
REVOKE ALL ON FUNCTION release_holds FROM PUBLIC;

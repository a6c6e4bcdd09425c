-- cost_of_units(order, sku_id, before, qty): what `qty` units of a SKU cost in an order, when `before` units came back earlier. The
-- dearer units come back first.
CREATE OR REPLACE FUNCTION cost_of_units(p_order_id bigint, p_sku_id bigint, p_before bigint, p_qty bigint)
RETURNS bigint LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
  SELECT coalesce(sum(unit_price_minor * greatest(least(last, p_before + p_qty) - greatest(first, p_before), 0)), 0)::bigint
    FROM (SELECT unit_price_minor, sum(qty) OVER up - qty AS first, sum(qty) OVER up AS last
            FROM order_lines WHERE order_id = p_order_id AND sku_id = p_sku_id
          WINDOW up AS (ORDER BY unit_price_minor DESC)) AS line
$$;
COMMENT ON FUNCTION cost_of_units IS 'What units of an order cost, the dearer ones first, in minor units.';
REVOKE ALL ON FUNCTION cost_of_units FROM PUBLIC;
GRANT EXECUTE ON FUNCTION cost_of_units TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;

-- order_hash(lines): the hash of an order as placed: its units summed per SKU, in the order of the SKUs. So neither the
-- order of the lines nor their division makes another order.
CREATE OR REPLACE FUNCTION order_hash(p_lines jsonb) RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE
RETURN (SELECT sha256(convert_to(jsonb_agg(jsonb_build_object('sku', sku, 'qty', qty) ORDER BY sku COLLATE "C")::text, 'UTF8'))
          FROM (SELECT l ->> 'sku' AS sku, sum((l ->> 'qty')::bigint) AS qty
                  FROM jsonb_array_elements(p_lines) AS l GROUP BY l ->> 'sku') AS summed);
COMMENT ON FUNCTION order_hash IS 'SHA-256 of the lines of an order, whatever their order.';
REVOKE ALL ON FUNCTION order_hash FROM PUBLIC;

-- orders_of(user, after, limit): the orders of this user with their lines, the newest first; `after`: only those behind this order, the
-- last one of the page before. No row: there are none.
CREATE OR REPLACE FUNCTION orders_of(p_user_id bigint, p_after bigint DEFAULT NULL, p_limit bigint DEFAULT 100)
RETURNS TABLE (order_id bigint, idempotency_key text, state text, reason text, skus text[], total_minor bigint, currency text,
               placed_at timestamptz, decided_at timestamptz, lines jsonb)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
BEGIN
  PERFORM check_limit(p_limit);
  RETURN QUERY
  SELECT o.order_id, o.idempotency_key, o.state, o.reason, o.skus, o.total_minor, o.currency::text, o.placed_at, o.decided_at,
         (SELECT coalesce(jsonb_agg(jsonb_build_object('sku', s.sku, 'qty', l.qty, 'unit_price_minor', l.unit_price_minor)
                                    ORDER BY s.sku, l.unit_price_minor), '[]')
            FROM order_lines AS l JOIN stock AS s USING (sku_id) WHERE l.order_id = o.order_id)
    FROM orders AS o
   WHERE o.user_id = p_user_id AND (p_after IS NULL OR o.order_id < p_after)
   ORDER BY o.order_id DESC LIMIT p_limit;
END $$;
COMMENT ON FUNCTION orders_of IS
  'The orders of a user with their lines, the newest first. Lines of unknown SKUs are not kept: skus names them. Errors: LL002 bad limit.';
REVOKE ALL ON FUNCTION orders_of FROM PUBLIC;
GRANT EXECUTE ON FUNCTION orders_of TO ledgerlock_shop, ledgerlock_support;

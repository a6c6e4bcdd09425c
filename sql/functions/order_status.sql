-- order_status(user, order): state of an order of this user. No row: the user has no such order.
CREATE OR REPLACE FUNCTION order_status(p_user_id bigint, p_order_id bigint)
RETURNS TABLE (state text, reason text, skus text[], total_minor bigint, currency text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT o.state, o.reason, o.skus, o.total_minor, o.currency
    FROM orders AS o WHERE o.order_id = p_order_id AND o.user_id = p_user_id
$$;
COMMENT ON FUNCTION order_status IS
  'State of an order (pending, fulfilled, rejected, parked, cancelled), why it was rejected and for which SKUs, its total in minor units.';
REVOKE ALL ON FUNCTION order_status FROM PUBLIC;
GRANT EXECUTE ON FUNCTION order_status TO ledgerlock_shop, ledgerlock_support;

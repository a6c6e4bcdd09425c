-- order_status(user, order): what became of an order of this user. No row: it is not an order of this user.
CREATE OR REPLACE FUNCTION ledgerlock.order_status(p_user_id bigint, p_order_id bigint)
RETURNS TABLE (state text, reason text, skus text[], total_minor bigint, currency text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = ledgerlock, pg_temp AS $$
  SELECT o.state, o.reason, o.skus, o.total_minor, o.currency
    FROM orders AS o WHERE o.order_id = p_order_id AND o.user_id = p_user_id
$$;
COMMENT ON FUNCTION ledgerlock.order_status IS
  'State of an order (pending, fulfilled, rejected, parked), why it was rejected and for which SKUs, its total in minor units.';
REVOKE ALL ON FUNCTION ledgerlock.order_status FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ledgerlock.order_status TO ledgerlock_client;

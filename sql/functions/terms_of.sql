-- terms_of(subscription, period): what the subscription is and costs in that period.
CREATE OR REPLACE FUNCTION terms_of(p_subscription_id bigint, p_period_no bigint)
RETURNS TABLE (plan text, quantity bigint, unit_minor bigint, amount_minor bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
  SELECT coalesce(t.plan, s.plan), coalesce(t.quantity, 1), coalesce(t.unit_minor, s.amount_minor), coalesce(t.amount_minor, s.amount_minor)
    FROM subscriptions AS s
    LEFT JOIN LATERAL (SELECT * FROM subscription_terms
                        WHERE subscription_id = s.subscription_id AND from_period <= p_period_no
                          AND s.terms_from_no <= p_period_no
                        ORDER BY from_period DESC, terms_id DESC LIMIT 1) AS t ON true
   WHERE s.subscription_id = p_subscription_id
$$;
COMMENT ON FUNCTION terms_of IS 'Plan, quantity, price of one unit and amount of a subscription in a period.';
REVOKE ALL ON FUNCTION terms_of FROM PUBLIC;
GRANT EXECUTE ON FUNCTION terms_of TO ledgerlock_support, ledgerlock_reader, ledgerlock_worker;

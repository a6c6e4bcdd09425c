-- terms_of(subscription, period): what the subscription is and costs in that period. Decisions say only what they change; of those
-- that are for the period or an earlier one, the last one counts. The periods of a trial cost nothing, whatever the terms.
CREATE OR REPLACE FUNCTION terms_of(p_subscription_id bigint, p_period_no bigint)
RETURNS TABLE (plan text, quantity bigint, unit_minor bigint, amount_minor bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
  SELECT folded.plan, folded.quantity, folded.unit_minor,
         folded.quantity * folded.unit_minor * (p_period_no >= s.trial_periods)::int
    FROM subscriptions AS s
   CROSS JOIN LATERAL (
     SELECT coalesce((array_agg(t.plan ORDER BY t.terms_id DESC) FILTER (WHERE t.plan IS NOT NULL))[1], s.plan) AS plan,
            coalesce((array_agg(t.quantity ORDER BY t.terms_id DESC) FILTER (WHERE t.quantity IS NOT NULL))[1], 1) AS quantity,
            coalesce((array_agg(t.unit_minor ORDER BY t.terms_id DESC) FILTER (WHERE t.unit_minor IS NOT NULL))[1], s.amount_minor) AS unit_minor
       FROM subscription_terms AS t
      WHERE t.subscription_id = s.subscription_id AND t.from_period <= p_period_no AND s.terms_from_no <= p_period_no) AS folded
   WHERE s.subscription_id = p_subscription_id
$$;
COMMENT ON FUNCTION terms_of IS 'Plan, quantity, price of one unit and amount of a subscription in a period.';
REVOKE ALL ON FUNCTION terms_of FROM PUBLIC;
GRANT EXECUTE ON FUNCTION terms_of TO ledgerlock_support, ledgerlock_reader, ledgerlock_worker;

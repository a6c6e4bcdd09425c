-- paid_terms(subscription, period, amount): what a whole period would have cost by the terms that are still paid for, in minor units: the amount
-- of the charge and the changes of terms in the period, each less the part of it that was refunded. For change_now: what was
-- given back is not given back again.
CREATE OR REPLACE FUNCTION paid_terms(p_subscription_id bigint, p_period_no bigint, p_amount_minor bigint)
RETURNS bigint LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
  SELECT round(p_amount_minor
               - coalesce((SELECT sum(amount_minor) FROM corrections
                            WHERE (of_kind, of_source, of_leg) = ('charge', p_subscription_id, p_period_no)), 0)
               + coalesce(sum((p.new_minor - p.old_minor)
                              * (1 - coalesce((SELECT sum(r.amount_minor) FROM corrections AS r
                                                WHERE (r.of_kind, r.of_source, r.of_leg) = ('proration', p.proration_id, 0))
                                              / nullif(p.amount_minor, 0), 0))), 0))::bigint
    FROM prorations AS p
   WHERE p.subscription_id = p_subscription_id AND p.period_no = p_period_no
$$;
COMMENT ON FUNCTION paid_terms IS 'What a period would cost by the terms that are still paid for: without what was refunded.';
REVOKE ALL ON FUNCTION paid_terms FROM PUBLIC;

-- paid_terms(subscription, period, amount): what a whole period would have cost by the terms that are still paid for, in minor units: the amount
-- of the charge and the changes of terms in the period, each less the part of it that was refunded. For change_now: what was
-- given back is not given back again.
CREATE OR REPLACE FUNCTION paid_terms(p_subscription_id bigint, p_period_no bigint, p_amount_minor bigint)
RETURNS bigint LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
  SELECT round(p_amount_minor
               - coalesce(sum(w.amount_minor) FILTER (WHERE w.kind <> 'proration'), 0)
               + coalesce(sum((t.quantity * t.unit_minor - w.old_minor)
                              * (1 + coalesce((SELECT sum(r.amount_minor) FROM wallet_entries AS r
                                                WHERE (r.of_kind, r.of_source, r.of_leg) = ('proration', w.entry_id, 0))
                                              / nullif(w.amount_minor, 0), 0))) FILTER (WHERE w.kind = 'proration'), 0))::bigint
    FROM wallet_entries AS w LEFT JOIN subscription_terms AS t ON t.subscription_id = w.of_source AND t.terms_id = w.terms_id
   WHERE (w.of_kind, w.of_source, w.of_leg) = ('charge', p_subscription_id, p_period_no)
$$;
COMMENT ON FUNCTION paid_terms IS 'What a period would cost by the terms that are still paid for: without what was refunded.';
REVOKE ALL ON FUNCTION paid_terms FROM PUBLIC;

-- paid_for_period(subscription, period, start): what its user has paid for a captured period, in minor units: the charge, what
-- changes of terms cost or gave back, and less what was refunded of both. Null: the period is not captured.
CREATE OR REPLACE FUNCTION paid_for_period(p_subscription_id bigint, p_period_no bigint, p_start timestamptz)
RETURNS numeric LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET plan_cache_mode = force_custom_plan AS $$
BEGIN -- a plan of one partition
  RETURN (
  SELECT c.amount_minor - coalesce((
           SELECT sum(w.amount_minor + coalesce((SELECT sum(r.amount_minor) FROM wallet_entries AS r
                                                  WHERE (r.of_kind, r.of_source, r.of_leg) = ('proration', w.entry_id, 0)), 0))
             FROM wallet_entries AS w WHERE (w.of_kind, w.of_source, w.of_leg) = ('charge', p_subscription_id, p_period_no)), 0)
    FROM charges AS c
   WHERE c.subscription_id = p_subscription_id AND c.period_no = p_period_no AND c.period_start = p_start AND c.state = 'captured' LIMIT 1);
END $$;
COMMENT ON FUNCTION paid_for_period IS 'What was paid for a captured period: charge and prorations, less refunds. Null: it is not captured.';
REVOKE ALL ON FUNCTION paid_for_period FROM PUBLIC;
GRANT EXECUTE ON FUNCTION paid_for_period TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;

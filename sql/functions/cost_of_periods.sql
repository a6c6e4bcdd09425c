-- cost_of_periods(subscription, first, last, trial, terms_from_no, amount): what these periods cost together. The last three are of
-- the row of subscriptions, so that periods whose terms never changed need no other row.
CREATE OR REPLACE FUNCTION cost_of_periods(
  p_subscription_id bigint, p_first bigint, p_last bigint, p_trial_periods smallint, p_terms_from_no bigint, p_amount_minor bigint)
RETURNS numeric LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
BEGIN
  IF p_terms_from_no <= p_last OR p_trial_periods > p_first THEN
    RETURN (SELECT sum(t.amount_minor) FROM generate_series(p_first, p_last) AS no, terms_of(p_subscription_id, no) AS t);
  END IF;
  RETURN (p_last - p_first + 1)::numeric * p_amount_minor;
END $$;
COMMENT ON FUNCTION cost_of_periods IS 'What periods of a subscription cost together, whatever their terms.';
REVOKE ALL ON FUNCTION cost_of_periods FROM PUBLIC;
GRANT EXECUTE ON FUNCTION cost_of_periods TO ledgerlock_support, ledgerlock_reader, ledgerlock_worker;

-- charges_of(user, subscription, after, limit): the periods of a subscription of this user that were tried or left out, the newest first;
-- `after`: only those before this period, the last one of the page before. No row: there are none, or it is not his.
-- Each period is looked up by its key with its start, so that the partition of one month is read for it.
CREATE OR REPLACE FUNCTION charges_of(
  p_user_id bigint, p_subscription_id bigint, p_after bigint DEFAULT NULL, p_limit bigint DEFAULT 100)
RETURNS TABLE (period_no bigint, period_start timestamptz, period_end timestamptz, state text, amount_minor bigint, currency text,
               tries integer, charged_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
BEGIN
  PERFORM check_limit(p_limit);
  RETURN QUERY
  SELECT c.period_no, c.period_start, c.period_end, c.state, c.amount_minor, s.currency::text, c.tries, c.charged_at
    FROM subscriptions AS s
   CROSS JOIN LATERAL (SELECT greatest(least(p_after, s.next_period_no + 1), 0) - 1 AS last) AS page
   CROSS JOIN LATERAL generate_series(greatest(page.last - p_limit, 0), page.last) AS no
   CROSS JOIN LATERAL (SELECT * FROM charges
                        WHERE subscription_id = s.subscription_id AND period_no = no
                          AND period_start = period_start(s.anchor_at, s.unit, s.every, no) OFFSET 0) AS c
   WHERE s.subscription_id = p_subscription_id AND s.user_id = p_user_id
   ORDER BY no DESC LIMIT p_limit;
END $$;
COMMENT ON FUNCTION charges_of IS
  'The periods of a subscription with what each cost and what became of it, the newest first. Errors: LL002 bad limit.';
REVOKE ALL ON FUNCTION charges_of FROM PUBLIC;
GRANT EXECUTE ON FUNCTION charges_of TO ledgerlock_shop, ledgerlock_support;

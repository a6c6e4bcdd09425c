-- check_catch_up(subscription, anchor, unit, every, next period, until, max): refuses a subscription with more than max
-- periods due that begin before `until`, which is now or its cancellation (SQLSTATE 22003, which parks it alone). Called only for one that has been due for max days or longer.
-- Months and years count with their mean length, so the number may be one off.
CREATE OR REPLACE FUNCTION check_catch_up(
  p_subscription_id bigint, p_anchor timestamptz, p_unit text, p_every integer, p_no bigint, p_until timestamptz, p_max bigint)
RETURNS boolean LANGUAGE plpgsql IMMUTABLE SET search_path FROM CURRENT AS $$
DECLARE
  v_periods bigint := 1 + floor(extract(epoch FROM p_until - period_start(p_anchor, p_unit, p_every, p_no)) / p_every
                       / CASE p_unit WHEN 'day' THEN 86400 WHEN 'week' THEN 604800
                                     WHEN 'month' THEN 2629746 ELSE 31556952 END);
BEGIN
  IF v_periods > p_max THEN
    RAISE numeric_value_out_of_range USING
      MESSAGE = format('subscription %s has %s periods due, more than billing.catch_up_max (%s); raise it, then release it',
                       p_subscription_id, v_periods, p_max);
  END IF;
  RETURN true;
END $$;
COMMENT ON FUNCTION check_catch_up IS
  'Refuses a subscription with more periods due than it may be charged for. SQLSTATE 22003.';
REVOKE ALL ON FUNCTION check_catch_up FROM PUBLIC;

-- set_terms(user, subscription, from_period, plan, quantity, unit price): a decision about what the subscription is and costs from
-- that period on; null: from the first period that was not tried yet. Plan, quantity or price null: that stays as it is. The decision counts
-- for every later period, also for one that an earlier decision was for. A period costs quantity times unit price, and
-- nothing in a trial. Returns the time from which the terms count. The same terms of the same period again change nothing,
-- unless a decision that was made since counts there.
CREATE OR REPLACE FUNCTION set_terms(
  p_user_id bigint, p_subscription_id bigint, p_from_period bigint, p_plan text, p_quantity bigint, p_unit_minor bigint)
RETURNS timestamptz LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_sub  subscriptions%ROWTYPE;
  v_open bigint; -- the first period that was not tried yet
  v_from bigint;
  v_last subscription_terms%ROWTYPE;
BEGIN
  IF p_plan = '' OR length(p_plan) > 255 THEN
    RAISE EXCEPTION 'a plan must have 1 to 255 characters' USING ERRCODE = 'LL002';
  END IF;
  IF p_quantity < 1 OR p_unit_minor < 0 OR num_nonnulls(p_plan, p_quantity, p_unit_minor) = 0 THEN
    RAISE EXCEPTION 'a quantity is from 1, a price from 0, and one of plan, quantity and price is set' USING ERRCODE = 'LL002';
  END IF;
  PERFORM FROM users WHERE user_id = p_user_id FOR NO KEY UPDATE;
  SELECT * INTO v_sub FROM subscriptions WHERE subscription_id = p_subscription_id AND user_id = p_user_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'user % has no subscription %', p_user_id, p_subscription_id USING ERRCODE = 'LL002';
  END IF;
  v_open := v_sub.next_period_no + (v_sub.retries > 0 OR v_sub.state = 'paying')::int;
  v_from := coalesce(p_from_period, v_open);
  SELECT * INTO v_last FROM subscription_terms
   WHERE subscription_id = p_subscription_id AND from_period = v_from ORDER BY terms_id DESC LIMIT 1;
  IF FOUND AND NOT EXISTS (SELECT FROM subscription_terms WHERE subscription_id = p_subscription_id AND terms_id > v_last.terms_id
                              AND from_period <= v_from)
     AND (v_last.plan, v_last.quantity, v_last.unit_minor) IS NOT DISTINCT FROM (p_plan, p_quantity, p_unit_minor) THEN
    RETURN period_start(v_sub.anchor_at, v_sub.unit, v_sub.every, v_from);
  END IF;
  IF v_sub.state = 'cancelled' THEN
    RAISE EXCEPTION 'subscription % is cancelled', p_subscription_id USING ERRCODE = 'LL003';
  END IF;
  IF v_from < v_open OR v_from > v_open + 1000 THEN
    RAISE EXCEPTION 'terms of subscription % can change from period % to %, not from %', p_subscription_id, v_open, v_open + 1000,
      v_from USING ERRCODE = 'LL002', DETAIL = 'A period that is charged, waived, skipped or declined keeps its terms.';
  END IF;
  INSERT INTO subscription_terms (subscription_id, from_period, plan, quantity, unit_minor)
  VALUES (p_subscription_id, v_from, p_plan, p_quantity, p_unit_minor);
  WITH given AS (
    UPDATE subscriptions SET terms_from_no = least(terms_from_no, v_from) WHERE subscription_id = p_subscription_id
    RETURNING *
  )
  INSERT INTO events (subscription_id, event, state, next_period_no, retries, next_due_at, cancel_at, user_id, from_period)
  SELECT subscription_id, 'terms', state, next_period_no, retries, next_due_at, cancel_at, user_id, v_from FROM given;
  IF (SELECT coalesce(max(quantity), 1)::numeric * greatest(max(unit_minor), v_sub.amount_minor) FROM subscription_terms
       WHERE subscription_id = p_subscription_id) < 9223372036854775807 THEN
    RETURN period_start(v_sub.anchor_at, v_sub.unit, v_sub.every, v_from);
  END IF;
  BEGIN -- with what earlier decisions bring later
    PERFORM t.* FROM subscription_terms AS d, terms_of(p_subscription_id, greatest(d.from_period, v_from)) AS t
      WHERE d.subscription_id = p_subscription_id;
  EXCEPTION WHEN numeric_value_out_of_range THEN
    RAISE EXCEPTION 'a quantity and a price together fit into 64 bits' USING ERRCODE = 'LL002';
  END;
  RETURN period_start(v_sub.anchor_at, v_sub.unit, v_sub.every, v_from);
END $$;
COMMENT ON FUNCTION set_terms IS
  'Plan, quantity and price from a period on, null: as before; returns the start of it. Errors: LL002 bad argument, or the period was tried; LL003 cancelled.';
REVOKE ALL ON FUNCTION set_terms FROM PUBLIC;
GRANT EXECUTE ON FUNCTION set_terms TO ledgerlock_support;

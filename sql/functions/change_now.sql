-- change_now(user, subscription, plan, quantity, unit price, key, at): changes the terms in the middle of a period that is paid, once per
-- (user, key). The new terms count from the next period on. For the rest of this one the difference to the terms before is
-- charged, or the difference to what is still paid is given back: difference x whole days left / whole days of the period, to the nearest
-- minor unit, and from the middle in favour of the customer. The day of the change counts as used; a period of a trial stays free. Returns what was charged; below zero it was given back.
-- `at` is at most a day before now() and not after it. The same key with other terms is an error (SQLSTATE LL001).
CREATE OR REPLACE FUNCTION change_now(
  p_user_id bigint, p_subscription_id bigint, p_plan text, p_quantity bigint, p_unit_minor bigint, p_idempotency_key text,
  p_at timestamptz DEFAULT now())
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_balance bigint;
  v_sub     subscriptions%ROWTYPE;
  v_paid    charges%ROWTYPE;
  v_old     wallet_entries%ROWTYPE;
  v_new     wallet_entries%ROWTYPE;
  v_terms   subscription_terms%ROWTYPE;
  v_cost    bigint;
  v_days    bigint;
BEGIN
  IF coalesce(p_idempotency_key, '') = '' OR length(p_idempotency_key) > 255 THEN
    RAISE EXCEPTION 'idempotency key must have 1 to 255 characters' USING ERRCODE = 'LL002';
  END IF;
  IF num_nulls(p_plan, p_quantity, p_unit_minor) > 0 THEN
    RAISE EXCEPTION 'name the plan, the quantity and the price of one unit' USING ERRCODE = 'LL002';
  END IF;
  SELECT balance_minor INTO v_balance FROM users WHERE user_id = p_user_id FOR NO KEY UPDATE;
  SELECT * INTO v_sub FROM subscriptions WHERE subscription_id = p_subscription_id AND user_id = p_user_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'user % has no subscription %', p_user_id, p_subscription_id USING ERRCODE = 'LL002';
  END IF;
  SELECT * INTO v_old FROM wallet_entries WHERE (user_id, kind, idempotency_key) = (p_user_id, 'proration', p_idempotency_key);
  IF FOUND THEN
    SELECT * INTO v_terms FROM subscription_terms WHERE subscription_id = v_old.of_source AND terms_id = v_old.terms_id;
    IF (v_old.of_source, v_terms.plan, v_terms.quantity, v_terms.unit_minor)
       IS DISTINCT FROM (p_subscription_id, p_plan, p_quantity, p_unit_minor) THEN
      RAISE EXCEPTION 'key "%" of user % was used for other terms', p_idempotency_key, p_user_id USING ERRCODE = 'LL001';
    END IF;
    RETURN -v_old.amount_minor;
  END IF;
  PERFORM check_time('the time of a change', p_at, interval '24 hours', interval '0');
  SELECT * INTO v_paid FROM charges
   WHERE subscription_id = p_subscription_id AND period_no = v_sub.next_period_no - 1 AND state = 'captured'
     AND period_start = period_start(v_sub.anchor_at, v_sub.unit, v_sub.every, v_sub.next_period_no - 1)
     AND p_at >= period_start AND p_at < period_end;
  IF NOT FOUND OR v_sub.state <> 'active' THEN
    RAISE EXCEPTION 'subscription % is %, with no period that runs at % and was paid from the wallet', p_subscription_id, v_sub.state, p_at
      USING ERRCODE = 'LL003';
  END IF;
  SELECT * INTO v_old FROM wallet_entries
   WHERE (of_kind, of_source, of_leg) = ('charge', p_subscription_id, v_paid.period_no) AND kind = 'proration' ORDER BY entry_id DESC LIMIT 1;
  IF v_old.at > p_at THEN
    RAISE EXCEPTION 'the terms of subscription % were changed after % already', p_subscription_id, p_at USING ERRCODE = 'LL002';
  END IF;
  PERFORM set_terms(p_user_id, p_subscription_id, v_sub.next_period_no, p_plan, p_quantity, p_unit_minor);
  v_cost := p_quantity * p_unit_minor; -- set_terms has refused what does not fit
  SELECT terms_id INTO v_new.terms_id FROM subscription_terms
   WHERE subscription_id = p_subscription_id AND from_period = v_sub.next_period_no ORDER BY terms_id DESC LIMIT 1;
  SELECT quantity * unit_minor INTO v_new.old_minor FROM subscription_terms
   WHERE subscription_id = p_subscription_id AND terms_id = v_old.terms_id;
  v_new.old_minor := coalesce(v_new.old_minor, v_paid.amount_minor);
  IF v_cost < v_new.old_minor THEN
    v_new.old_minor := least(v_new.old_minor, greatest(paid_terms(p_subscription_id, v_paid.period_no, v_paid.amount_minor), v_cost));
  ELSIF v_paid.period_no < v_sub.trial_periods THEN
    v_new.old_minor := v_cost;
  END IF;
  v_days := extract(epoch FROM v_paid.period_end - v_paid.period_start) / 86400;
  v_new.amount_minor := -prorated(v_new.old_minor, v_cost, floor(extract(epoch FROM v_paid.period_end - p_at) / 86400)::bigint, v_days);
  IF v_new.amount_minor < -v_balance THEN
    RAISE EXCEPTION 'the wallet of user % has % minor units, the change costs %', p_user_id, v_balance, -v_new.amount_minor
      USING ERRCODE = 'LL003';
  ELSIF v_new.amount_minor > paid_for_period(p_subscription_id, v_paid.period_no, v_paid.period_start) THEN
    RAISE EXCEPTION 'the change gives back % minor units, and after refunds only % are paid for the period', v_new.amount_minor,
      paid_for_period(p_subscription_id, v_paid.period_no, v_paid.period_start) USING ERRCODE = 'LL003';
  ELSIF v_balance > 9223372036854775807 - greatest(v_new.amount_minor, 0) THEN
    RAISE EXCEPTION 'the balance would not fit into 64 bits' USING ERRCODE = 'LL002';
  END IF;
  INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, of_kind, of_source, of_leg, of_at, of_minor, terms_id,
                              old_minor, at)
  VALUES (p_user_id, 'proration', p_idempotency_key, v_new.amount_minor, 'charge', p_subscription_id, v_paid.period_no,
          v_paid.period_start, v_paid.amount_minor, v_new.terms_id, v_new.old_minor, p_at);
  UPDATE users SET balance_minor = balance_minor + v_new.amount_minor WHERE user_id = p_user_id;
  IF v_new.amount_minor > 0 THEN
    PERFORM retry_past_due(p_user_id, v_balance + v_new.amount_minor, p_at);
  END IF;
  RETURN -v_new.amount_minor;
END $$;
COMMENT ON FUNCTION change_now IS
  'New terms at once, prorated by whole days; returns what was charged. Errors: LL001 key used otherwise, LL002 bad argument, LL003 no paid period is running, the wallet cannot pay, or less is paid than it gives back.';
REVOKE ALL ON FUNCTION change_now FROM PUBLIC;
GRANT EXECUTE ON FUNCTION change_now TO ledgerlock_support;

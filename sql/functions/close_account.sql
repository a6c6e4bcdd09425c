-- close_account(user): ends the account: from now on nothing can be booked, ordered or subscribed. Refused (SQLSTATE LL003)
-- while a subscription is not cancelled, an order is not decided, or the wallet is not empty: no money is paid out here.
-- Returns when it was closed; a second call changes nothing. Only in a transaction that is read committed: another one looks with
-- a snapshot that may be older than the lock. Nobody is in the middle of an order: FOR UPDATE waits for those.
CREATE OR REPLACE FUNCTION close_account(p_user_id bigint)
RETURNS timestamptz LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_user users%ROWTYPE;
  v_id   bigint;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'close_account does not see in a transaction that is % what was written meanwhile', current_setting('transaction_isolation')
      USING ERRCODE = 'LL002', HINT = 'Call it in a transaction of its own that is read committed, which is the default.';
  END IF;
  SELECT * INTO v_user FROM users WHERE user_id = p_user_id FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'user % does not exist', p_user_id USING ERRCODE = 'LL002';
  END IF;
  IF v_user.closed_at IS NOT NULL THEN
    RETURN v_user.closed_at;
  END IF;
  SELECT c.subscription_id INTO v_id FROM contracts AS c JOIN subscriptions AS s USING (subscription_id)
   WHERE c.user_id = p_user_id AND s.state <> 'cancelled' LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'subscription % of user % is not cancelled', v_id, p_user_id USING ERRCODE = 'LL003';
  END IF;
  SELECT order_id INTO v_id FROM orders WHERE user_id = p_user_id AND state IN ('pending', 'paying', 'parked') LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'order % of user % is not decided', v_id, p_user_id USING ERRCODE = 'LL003';
  END IF;
  IF v_user.balance_minor <> 0 THEN
    RAISE EXCEPTION 'the wallet of user % has % minor units', p_user_id, v_user.balance_minor USING ERRCODE = 'LL003';
  END IF;
  v_user.closed_at := clock_timestamp();
  UPDATE users SET closed_at = v_user.closed_at WHERE user_id = p_user_id;
  INSERT INTO events (event, user_id, at) VALUES ('closed', p_user_id, v_user.closed_at);
  RETURN v_user.closed_at;
END $$;
COMMENT ON FUNCTION close_account IS
  'Closes an empty account for good. Errors: LL002 no such user, or not read committed; LL003 a subscription, an order or money is left.';
REVOKE ALL ON FUNCTION close_account FROM PUBLIC;
GRANT EXECUTE ON FUNCTION close_account TO ledgerlock_support;

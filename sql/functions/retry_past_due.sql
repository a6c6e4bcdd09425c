-- retry_past_due(user, at): makes past-due subscriptions of the user due at `at` that the wallet can pay now, in the order of their
-- next try. The try counts as the next one of the schedule, so a deposit that is too small for any must not use one up.
-- The caller has locked the user, whose balance is that after the deposit. Table charges has the amount of the open period.
-- In an isolation with a snapshot the subscriptions are locked first: one that was declined since is a serialization failure, and the
-- caller tries again; else a deposit would not see the decline.
CREATE OR REPLACE FUNCTION retry_past_due(p_user_id bigint, p_balance_minor bigint, p_at timestamptz)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    PERFORM FROM contracts JOIN subscriptions AS s USING (subscription_id) WHERE contracts.user_id = p_user_id FOR NO KEY UPDATE OF s;
  END IF;
  IF NOT EXISTS (SELECT FROM subscriptions WHERE user_id = p_user_id AND state = 'past_due') THEN
    RETURN; -- charges has many partitions, and a deposit shall not open them for nothing
  END IF;
  WITH payable AS (
    SELECT s.subscription_id, sum(c.amount_minor) OVER (ORDER BY s.next_due_at, s.subscription_id) AS until_it
      FROM subscriptions AS s
      JOIN charges AS c ON c.subscription_id = s.subscription_id AND c.period_no = s.next_period_no
       AND c.period_start = period_start(s.anchor_at, s.unit, s.every, s.next_period_no)
     WHERE s.user_id = p_user_id AND s.state = 'past_due' AND c.amount_minor <= p_balance_minor
  ), given AS (
    UPDATE subscriptions AS s
       SET next_due_at = greatest(p_at, period_start(s.anchor_at, s.unit, s.every, s.next_period_no))
      FROM payable AS p
     WHERE s.subscription_id = p.subscription_id AND p.until_it <= p_balance_minor
       AND s.next_due_at > greatest(p_at, period_start(s.anchor_at, s.unit, s.every, s.next_period_no))
    RETURNING s.*
  )
  INSERT INTO events (subscription_id, event, state, next_period_no, retries, next_due_at, cancel_at,
                      user_id, at)
  SELECT subscription_id, 'due', state, next_period_no, retries, next_due_at, cancel_at, user_id, p_at FROM given;
END $$;
COMMENT ON FUNCTION retry_past_due IS 'Past-due subscriptions that the wallet can pay now become due at once.';
REVOKE ALL ON FUNCTION retry_past_due FROM PUBLIC;

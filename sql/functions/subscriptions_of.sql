-- subscriptions_of(user): the subscriptions of this user, the newest first, with the terms of the period that is charged next. Rows
-- are found by their contracts, whose key begins with the user. No row: there are none.
CREATE OR REPLACE FUNCTION subscriptions_of(p_user_id bigint)
RETURNS TABLE (subscription_id bigint, state text, plan text, quantity bigint, unit_price_minor bigint, amount_minor bigint,
               currency text, unit text, every integer, anchor_at timestamptz, next_period_no bigint, next_due_at timestamptz,
               cancel_at timestamptz, declines integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT s.subscription_id, s.state, t.plan, t.quantity, t.unit_minor, t.amount_minor, s.currency::text, s.unit, s.every, s.anchor_at, s.next_period_no, s.next_due_at,
         s.cancel_at, s.retries
    FROM contracts AS c
    JOIN subscriptions AS s ON s.subscription_id = c.subscription_id
   CROSS JOIN LATERAL terms_of(s.subscription_id, s.next_period_no) AS t
   WHERE c.user_id = p_user_id
   ORDER BY s.subscription_id DESC;
END $$;
COMMENT ON FUNCTION subscriptions_of IS
  'The subscriptions of a user, the newest first: state, terms of the next period, when it is due or tried again, and the end.';
REVOKE ALL ON FUNCTION subscriptions_of FROM PUBLIC;
GRANT EXECUTE ON FUNCTION subscriptions_of TO ledgerlock_shop, ledgerlock_support;

-- subscriptions_of(user): the subscriptions of this user, the newest first, with the terms of the period that is charged next. Rows
-- are found by their contracts, whose key begins with the user. No row: there are none.
CREATE OR REPLACE FUNCTION subscriptions_of(p_user_id bigint)
RETURNS TABLE (subscription_id bigint, state text, plan text, quantity bigint, unit_price_minor bigint, amount_minor bigint,
               currency text, unit text, every integer, anchor_at timestamptz, next_period_no bigint, next_due_at timestamptz,
               cancel_at timestamptz, declines integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT s.subscription_id, s.state, coalesce(t.plan, s.plan), coalesce(t.quantity, 1), coalesce(t.unit_minor, s.amount_minor),
         coalesce(t.amount_minor, s.amount_minor), s.currency, s.unit, s.every, s.anchor_at, s.next_period_no, s.next_due_at,
         s.cancel_at, s.retries
    FROM contracts AS c
    JOIN subscriptions AS s ON s.subscription_id = c.subscription_id
    LEFT JOIN LATERAL (SELECT * FROM subscription_terms
                        WHERE subscription_id = s.subscription_id AND from_period <= s.next_period_no
                          AND s.terms_from_no <= s.next_period_no
                        ORDER BY from_period DESC, terms_id DESC LIMIT 1) AS t ON true
   WHERE c.user_id = p_user_id
   ORDER BY s.subscription_id DESC
$$;
COMMENT ON FUNCTION subscriptions_of IS
  'The subscriptions of a user, the newest first: state, terms of the next period, when it is due or tried again, and the end.';
REVOKE ALL ON FUNCTION subscriptions_of FROM PUBLIC;
GRANT EXECUTE ON FUNCTION subscriptions_of TO ledgerlock_shop, ledgerlock_support;

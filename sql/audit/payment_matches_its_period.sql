-- Every charge that is paid has the captured payment of its user and amount, and every captured payment such a charge.
-- A subscription that is paying has the one payment that is not decided, of its next period, and no other has one.
WITH paid AS (
  SELECT coalesce(c.subscription_id, p.subscription_id) AS subscription_id, coalesce(c.period_no, p.period_no) AS period_no,
         format('charge %s of user %s, paid; payments captured: %s of user %s', c.amount_minor, c.user_id, p.minors, p.user_ids) AS detail
    FROM (SELECT subscription_id, period_no, user_id, amount_minor, period_start FROM open_charges WHERE state = 'paid') AS c
    FULL JOIN (SELECT subscription_id, period_no, array_agg(amount_minor) AS minors, array_agg(user_id) AS user_ids,
                      array_agg(period_start) AS starts
                 FROM payments WHERE state = 'captured' AND period_start >= (SELECT first_open())
                GROUP BY subscription_id, period_no) AS p USING (subscription_id, period_no)
   WHERE (ARRAY[c.amount_minor], ARRAY[c.user_id], ARRAY[c.period_start]) IS DISTINCT FROM (p.minors, p.user_ids, p.starts)
), open AS (
  SELECT coalesce(s.subscription_id, p.subscription_id) AS subscription_id, coalesce(s.next_period_no, p.period_no) AS period_no,
         format('subscription of user %s is %s; payments not decided: %s of user %s', s.user_id, coalesce(s.state, 'not paying'), p.states,
                p.user_ids) AS detail
    FROM (SELECT subscription_id, next_period_no, user_id, state FROM subscriptions WHERE state = 'paying') AS s
    FULL JOIN (SELECT subscription_id, period_no AS next_period_no, period_no, array_agg(state) AS states, array_agg(user_id) AS user_ids
                 FROM payments WHERE state NOT IN ('captured', 'declined', 'void')
                GROUP BY subscription_id, period_no) AS p USING (subscription_id, next_period_no)
   WHERE ARRAY[s.user_id] IS DISTINCT FROM p.user_ids
)
SELECT format('subscription %s period %s', subscription_id, period_no) AS what, detail
  FROM (TABLE paid UNION ALL TABLE open) AS strange
 ORDER BY what;

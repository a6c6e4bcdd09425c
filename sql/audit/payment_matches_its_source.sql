-- A charge or order that was paid by card has the captured payment of its user and amount, and every captured payment is of such one.
-- Money that is given back to a card has its payment, which is not void. A subscription or an order that is paying has the one payment that is
-- not decided, and no other has one.
WITH wanted AS (
  SELECT 'charge' AS kind, subscription_id AS source, period_no AS leg, user_id, amount_minor, period_start AS at, 'captured' AS state
    FROM open_charges WHERE state = 'paid'
   UNION ALL
  SELECT 'charge', subscription_id, next_period_no, user_id, NULL, period_start(anchor_at, unit, every, next_period_no), 'open'
    FROM subscriptions WHERE state = 'paying'
   UNION ALL
  SELECT 'payment', order_id, 0, user_id, total_minor, placed_at, CASE state WHEN 'paying' THEN 'open' ELSE 'captured' END
    FROM open_orders WHERE by_card AND state IN ('fulfilled', 'paying')
   UNION ALL
  SELECT 'refund', entry_id, 0, user_id, amount_minor, at, NULL
    FROM wallet_entries WHERE of_kind = 'card' AND kind <> 'deposit' AND at >= (SELECT first_open())
), found AS (
  SELECT kind, source, leg, user_id, amount_minor, source_at AS at, state
    FROM payments WHERE state NOT IN ('declined', 'void') AND (source_at >= (SELECT first_open()) OR state <> 'captured')
)
SELECT format('%s %s/%s', kind, source, leg) AS what,
       format('%s of user %s, %s; payment: %s of user %s, %s', w.amount_minor, w.user_id, coalesce(w.state, 'none'), f.minors, f.user_ids,
              coalesce(f.states::text, 'none')) AS detail
  FROM wanted AS w
  FULL JOIN (SELECT kind, source, leg, array_agg(user_id) AS user_ids, array_agg(amount_minor) AS minors, array_agg(at) AS times,
                    array_agg(state) AS states
               FROM found GROUP BY kind, source, leg) AS f USING (kind, source, leg)
 WHERE (ARRAY[w.user_id], ARRAY[coalesce(w.amount_minor, f.minors[1])], ARRAY[w.at]) IS DISTINCT FROM (f.user_ids, f.minors, f.times)
    OR (w.kind <> 'refund' AND (w.state = 'captured') IS DISTINCT FROM (f.states[1] = 'captured'))
 ORDER BY what;

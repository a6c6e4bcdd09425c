-- Rows that are worked alone, since a worker died while it worked them. Columns: how many. Locks: none.
SELECT count(*)
  FROM ledgerlock.quarantine AS q
 WHERE CASE q.job WHEN 'billing' THEN EXISTS (SELECT FROM ledgerlock.subscriptions AS s
                                               WHERE s.subscription_id = q.item AND s.state IN ('active', 'past_due'))
                  ELSE EXISTS (SELECT FROM ledgerlock.orders AS o WHERE o.order_id = q.item AND o.state = 'pending') END

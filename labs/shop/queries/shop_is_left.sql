-- If something is left to do of what was there. $1 bigint: the last order. $2 bigint: the last subscription. Column: bool. Locks: none.
SELECT EXISTS (SELECT FROM orders WHERE state = 'pending' AND order_id <= $1::bigint)
       OR EXISTS (SELECT FROM subscriptions WHERE state = 'active' AND next_due_at <= now() AND subscription_id <= $2::bigint)
       OR EXISTS (SELECT FROM payments WHERE state IN ('planned', 'sent', 'unknown')
                  AND ((kind = 'charge' AND source <= $2::bigint) OR (kind = 'payment' AND source <= $1::bigint)))

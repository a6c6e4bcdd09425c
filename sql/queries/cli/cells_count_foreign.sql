-- Rows whose number is not one of this cell's. $1 int8: the cell. Column: how many. Locks: none.
WITH range AS (SELECT $1::bigint << 40 AS low, ($1::bigint + 1) << 40 AS high)
SELECT (SELECT count(*) FROM users, range WHERE user_id <= low OR user_id >= high)
     + (SELECT count(*) FROM subscriptions, range WHERE subscription_id <= low OR subscription_id >= high)
     + (SELECT count(*) FROM orders, range WHERE order_id <= low OR order_id >= high)
     + (SELECT count(*) FROM stock, range WHERE sku_id <= low OR sku_id >= high)

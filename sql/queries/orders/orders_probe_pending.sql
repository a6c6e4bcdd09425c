-- An idle worker asks this before it pulls; it costs half of a pull that finds nothing.
-- $1 timestamptz: now (null: the database's clock).
-- Columns: true if an order is pending that is due; true if the job is paused. Locks: none.
SELECT (SELECT order_id FROM orders WHERE state = 'pending' AND placed_at <= (SELECT coalesce($1::timestamptz, now()))
         ORDER BY placed_at, order_id LIMIT 1) IS NOT NULL,
       EXISTS (SELECT FROM paused_jobs WHERE job = 'orders')

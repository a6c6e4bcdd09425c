-- Behind how many batches with a younger order of its bucket each order came. A batch is a token, in the order in
-- which the locks were granted; age is order_id, as orders are pulled. A pending order is behind all that there are.
-- Columns: orders overtaken at all, 99th percentile of batches over all orders, the most. Locks: none.
-- Only orders older than the youngest that any earlier batch of their bucket served are compared with batches one by one.
WITH served AS (
  SELECT order_id, bucket, CASE WHEN state <> 'pending' THEN fence ELSE 9223372036854775807 END AS token
    FROM ledgerlock.orders
   WHERE state <> 'parked'
), batch AS (
  SELECT bucket, token, max(order_id) AS youngest,
         max(max(order_id)) OVER (PARTITION BY bucket ORDER BY token
                                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS youngest_before
    FROM served
   GROUP BY bucket, token
), overtaken AS (
  SELECT order_id, count(*) AS behind
    FROM served JOIN batch AS own USING (bucket, token)
    JOIN batch AS other USING (bucket)
   WHERE order_id < own.youngest_before AND other.token < served.token AND other.youngest > order_id
   GROUP BY order_id
)
SELECT count(overtaken.order_id), coalesce(percentile_disc(0.99) WITHIN GROUP (ORDER BY coalesce(behind, 0)), 0),
       coalesce(max(behind), 0)
  FROM served LEFT JOIN overtaken USING (order_id)

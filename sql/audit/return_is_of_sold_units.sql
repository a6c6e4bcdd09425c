-- Every return is of units that its user's fulfilled order sold, at their price, and has its refund.
-- A correction of that kind has its return.
WITH chain AS (
  SELECT r.*, coalesce(sum(qty) OVER (PARTITION BY order_id, sku_id ORDER BY return_id
                                      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
    FROM returns AS r
), recent AS (
  SELECT c.*, (SELECT coalesce(sum(qty), 0) FROM order_lines AS l WHERE l.order_id = c.order_id AND l.sku_id = c.sku_id) AS sold
    FROM chain AS c WHERE at >= (SELECT first_open())
)
SELECT format('return %s', r.return_id) AS what,
       format('%s after %s of %s units of order %s, SKU %s, for %s of %s; order: %s', r.qty, r.before_qty, r.sold,
              r.order_id, r.sku_id, r.refunded_minor, r.cost_minor, o.state) AS detail
  FROM recent AS r
  LEFT JOIN orders AS o ON o.order_id = r.order_id AND o.user_id = r.user_id
 WHERE (o.state, r.sold_qty::numeric, r.before_qty::numeric, r.cost_minor) IS DISTINCT FROM
       ('fulfilled', r.sold, r.before, cost_of_units(r.order_id, r.sku_id, r.before_qty, r.qty))
    OR r.before_qty + r.qty > r.sold_qty OR r.refunded_minor > r.cost_minor
 UNION ALL
SELECT format('return "%s" of user %s', idempotency_key, user_id),
       format('%s of order %s; correction: %s of order %s', r.refunded_minor, r.order_id, c.amount_minor, c.of_source)
  FROM (SELECT * FROM recent WHERE refunded_minor > 0) AS r
  FULL JOIN (SELECT * FROM corrections WHERE kind = 'return' AND at >= (SELECT first_open())) AS c USING (user_id, idempotency_key)
 WHERE (r.refunded_minor, r.order_id, r.at, r.reason) IS DISTINCT FROM (c.amount_minor, c.of_source, c.at, c.reason)
 ORDER BY what;

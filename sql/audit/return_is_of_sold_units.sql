-- Every return is of units that its user's fulfilled order sold, and gave back under its key their price, or what was left of the payment.
-- An entry of the wallet of that kind has its return.
WITH given AS ( -- for an order, into the wallet or to the card that paid it
  SELECT w.*, CASE of_kind WHEN 'payment' THEN of_source ELSE (SELECT source FROM payments WHERE payment_id = of_source AND kind = 'payment') END AS of_order
    FROM wallet_entries AS w WHERE of_kind IN ('payment', 'card')
), chain AS (
  SELECT r.*, coalesce(sum(qty) OVER (PARTITION BY order_id, sku_id ORDER BY entry_id
                                      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
    FROM stock_entries AS r WHERE kind = 'return'
), recent AS (
  SELECT c.*, (SELECT coalesce(sum(qty), 0) FROM order_lines AS l WHERE l.order_id = c.order_id AND l.sku_id = c.sku_id) AS sold,
         cost_of_units(c.order_id, c.sku_id, c.before_qty, c.qty) AS cost_minor
    FROM chain AS c WHERE at >= (SELECT first_open())
)
SELECT format('return %s', r.entry_id) AS what,
       format('%s after %s of %s units of order %s, SKU %s; order: %s', r.qty, r.before_qty, r.sold, r.order_id, r.sku_id, o.state) AS detail
  FROM recent AS r
  LEFT JOIN orders AS o ON o.order_id = r.order_id AND o.user_id = r.user_id
 WHERE (o.state, r.sold_qty::numeric, r.before_qty::numeric) IS DISTINCT FROM ('fulfilled', r.sold, r.before)
    OR r.before_qty + r.qty > r.sold_qty
 UNION ALL
SELECT format('return "%s" of user %s', idempotency_key, user_id),
       format('units of order %s for %s; given back: %s of order %s', r.order_id, r.cost_minor, coalesce(w.amount_minor, 0), w.of_order)
  FROM recent AS r
  FULL JOIN (SELECT * FROM given WHERE kind = 'return' AND at >= (SELECT first_open())) AS w USING (user_id, idempotency_key)
 WHERE CASE WHEN w.entry_id IS NULL -- nothing was left to give back, and nothing is
            THEN r.cost_minor > 0 AND (SELECT total_minor FROM orders WHERE order_id = r.order_id)
                                      > (SELECT coalesce(sum(amount_minor), 0) FROM given WHERE of_order = r.order_id)
            ELSE (r.order_id, r.at, r.reason, least(r.cost_minor, w.of_minor - w.before_minor))
                 IS DISTINCT FROM (w.of_order, w.at, w.reason, w.amount_minor) END
 ORDER BY what;

-- A fulfilled order was paid its total by its user; a free one was not paid.
SELECT format('order %s', o.order_id) AS what,
       CASE WHEN t.source IS NULL THEN format('total %s, no payment', o.total_minor)
            ELSE format('user %s total %s, paid by user %s amount %s',
                        o.user_id, o.total_minor, t.user_id, t.amount_minor) END AS detail
  FROM ledgerlock.orders AS o
  LEFT JOIN ledgerlock.transfers AS t ON t.kind = 'payment' AND t.source = o.order_id
 WHERE o.state = 'fulfilled'
   AND CASE WHEN t.source IS NULL THEN o.total_minor > 0
            ELSE t.user_id <> o.user_id OR t.amount_minor <> o.total_minor OR t.leg <> 0 END
 ORDER BY o.order_id;

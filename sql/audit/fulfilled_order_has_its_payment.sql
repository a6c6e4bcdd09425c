-- A fulfilled order was paid its total by its user when it was decided; a free one was not paid.
SELECT format('order %s', o.order_id) AS what,
       CASE WHEN t.source IS NULL THEN format('total %s, no payment', o.total_minor)
            ELSE format('user %s total %s at %s, paid by user %s amount %s at %s',
                        o.user_id, o.total_minor, o.decided_at, t.user_id, t.amount_minor, t.moved_at) END AS detail
  FROM open_orders AS o
  LEFT JOIN open_transfers AS t ON t.kind = 'payment' AND t.source = o.order_id
 WHERE o.state = 'fulfilled'
   AND CASE WHEN t.source IS NULL THEN o.total_minor > 0
            ELSE t.user_id <> o.user_id OR t.amount_minor <> o.total_minor OR t.leg <> 0 OR t.moved_at <> o.decided_at
                 OR t.source_at <> o.placed_at END
 ORDER BY o.order_id;

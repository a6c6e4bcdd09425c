-- life_of_order(order): its life in the order in which it was written: placing, lines, decision, sales, payment, attempts to ask a card, its events, returns,
-- what was given back, and the incidents that name it, its user or a SKU of it while it was pending, or its batch. amount_minor and
-- currency are null without money, token without a batch; worker is a role where a person acted.
CREATE OR REPLACE FUNCTION life_of_order(p_order_id bigint)
RETURNS TABLE (at text, what text, detail text, amount_minor bigint, currency text, token bigint, worker text)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET timezone = 'UTC' AS $$
  WITH o AS (
    SELECT * FROM orders WHERE order_id = p_order_id
  ), line AS (
    SELECT l.*, s.sku FROM order_lines AS l LEFT JOIN stock AS s USING (sku_id) WHERE l.order_id = p_order_id
  ), event AS (
    SELECT * FROM events WHERE order_id = p_order_id
  ), decided AS (
    SELECT coalesce(b.recorded_at, o.decided_at) AS at, b.worker
      FROM o
      LEFT JOIN LATERAL (SELECT recorded_at, worker FROM batches
                          WHERE job IN ('orders', 'payments') AND periods IS NULL AND token = o.fence AND o.fence > 0
                          ORDER BY abs(extract(epoch FROM at - o.decided_at)), batch_id LIMIT 1) AS b ON true
     WHERE o.decided_at IS NOT NULL
  ), told AS (
    SELECT recorded_at AS at, 0 AS nth, 'placed' AS what,
           format('user %s, key %s, from %s on', user_id, idempotency_key, to_char(placed_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) AS detail,
           total_minor AS amount_minor, NULL::bigint AS token, NULL AS worker
      FROM o
    UNION ALL
    SELECT o.recorded_at, 1, 'line', format('%s of %s, each', l.qty, coalesce(l.sku, 'SKU ' || l.sku_id)), l.unit_price_minor, NULL, NULL
      FROM o, line AS l
    UNION ALL
    SELECT d.at, 2, 'fulfilled', '', NULL, o.fence, d.worker FROM o, decided AS d WHERE o.state = 'fulfilled'
    UNION ALL
    SELECT d.at, 2, 'rejected', concat_ws(': ', replace(o.reason, '_', ' '), array_to_string(o.skus, ', ')), NULL, o.fence, d.worker
      FROM o, decided AS d
     WHERE o.state = 'rejected' AND o.fence > 0
    UNION ALL
    SELECT d.at, 3, 'sold', format('%s of %s', sum(l.qty), coalesce(l.sku, 'SKU ' || l.sku_id)), NULL, o.fence, d.worker
      FROM o, decided AS d, line AS l
     WHERE o.state = 'fulfilled'
     GROUP BY d.at, l.sku, l.sku_id, o.fence, d.worker
    UNION ALL
    SELECT d.at, 4, 'paid', format('from the %s of user %s', CASE WHEN o.by_card THEN 'card' ELSE 'wallet' END, o.user_id), o.total_minor, o.fence, d.worker
      FROM o, decided AS d
     WHERE o.state = 'fulfilled' AND o.total_minor > 0
    UNION ALL
    SELECT e.recorded_at, 5 + e.event_id, e.event,
           CASE e.event
             WHEN 'parked' THEN coalesce((SELECT detail FROM lock_incidents
                                           WHERE kind = 'parked' AND resource = 'order:' || p_order_id AND token = e.token
                                           ORDER BY abs(extract(epoch FROM at - e.recorded_at)) LIMIT 1), '')
             WHEN 'rejected' THEN concat_ws(': ', replace(o.reason, '_', ' '), array_to_string(o.skus, ', '))
             ELSE '' END,
           NULL, nullif(e.token, 0), e.worker
      FROM o, event AS e
    UNION ALL
    SELECT r.recorded_at, r.entry_id, 'returned', format('%s of %s: %s', r.qty, coalesce(s.sku, 'SKU ' || r.sku_id), r.reason),
           coalesce(w.amount_minor, 0), NULL, r.worker
      FROM stock_entries AS r
      LEFT JOIN stock AS s USING (sku_id)
      LEFT JOIN wallet_entries AS w USING (user_id, kind, idempotency_key)
     WHERE r.order_id = p_order_id AND r.kind = 'return'
    UNION ALL
    SELECT recorded_at, entry_id, kind, reason, amount_minor, NULL, worker
      FROM wallet_entries
     WHERE kind <> 'return' AND ((of_kind = 'payment' AND of_source = p_order_id)
                                OR (of_kind = 'card' AND of_source IN (SELECT payment_id FROM payments WHERE (source, kind) = (p_order_id, 'payment'))))
    UNION ALL
    SELECT at, payment_id, 'card', detail, amount_minor, token, worker FROM attempts_of('payment', p_order_id)
    UNION ALL
    SELECT i.at, i.incident_id, 'incident', format('%s, %s, %s: %s', replace(i.kind, '_', ' '), i.resource, i.phase, i.detail),
           NULL, nullif(i.token, 0), i.worker
      FROM o, lock_incidents AS i
     WHERE i.kind NOT IN ('parked', 'resumed')
       AND (i.resource = 'order:' || o.order_id
            OR (i.at >= o.recorded_at
                AND i.at <= coalesce((SELECT at FROM decided), (SELECT max(recorded_at) FROM event WHERE event = 'cancelled'), i.at)
                AND (i.resource = 'user:' || o.user_id OR i.resource IN (SELECT 'sku:' || sku_id FROM line)))
            OR (i.resource = 'orders' AND o.fence > 0 AND i.token = o.fence))
  )
  SELECT to_char(told.at, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS at, told.what, told.detail, told.amount_minor,
         CASE WHEN told.amount_minor IS NOT NULL THEN o.currency::text END AS currency, told.token, told.worker
    FROM o, told
   ORDER BY told.at, told.nth
$$;
COMMENT ON FUNCTION life_of_order IS
  'What happened to an order, in the order in which it was written. Errors: none of its own.';
REVOKE ALL ON FUNCTION life_of_order FROM PUBLIC;
GRANT EXECUTE ON FUNCTION life_of_order TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;

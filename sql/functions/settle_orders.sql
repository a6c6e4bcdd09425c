-- settle_orders(payments, token, worker, now): what follows for orders from attempts that were captured, declined or found void a moment
-- ago, for settle_payments, which has locked users and SKUs. The units that were held are sold, or free again. After a void attempt
-- the order is pending again, and is served by its placed_at. Attempts of other kinds are passed over.
-- The fence of a SKU stays: units are counted from the row as it is now, under its lock, and not from what a batch has read.
CREATE OR REPLACE FUNCTION settle_orders(p_ids bigint[], p_token bigint, p_worker text, p_now timestamptz)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM release_holds(array_agg(source) FILTER (WHERE state <> 'captured'), array_agg(source) FILTER (WHERE state = 'captured'))
    FROM payments WHERE payment_id = ANY (p_ids) AND kind = 'payment' AND state IN ('captured', 'declined', 'void')
  HAVING count(*) > 0;
  UPDATE orders AS o
     SET state = CASE p.state WHEN 'captured' THEN 'fulfilled' WHEN 'declined' THEN 'rejected' ELSE 'pending' END,
         reason = CASE p.state WHEN 'declined' THEN 'card_declined' END,
         decided_at = CASE WHEN p.state <> 'void' THEN p_now END,
         fence = CASE WHEN p.state <> 'void' THEN p_token ELSE o.fence END, by_card = p.state <> 'void'
    FROM payments AS p
   WHERE p.payment_id = ANY (p_ids) AND p.kind = 'payment' AND p.state IN ('captured', 'declined', 'void')
     AND o.order_id = p.source AND o.state = 'paying';
  INSERT INTO batches (job, token, worker, at, done, refused, ids, feed_no)
  SELECT 'payments', p_token, p_worker, p_now, count(*) FILTER (WHERE state = 'captured'), count(*) FILTER (WHERE state = 'declined'),
         array_agg(source), next_feed_no()
    FROM payments WHERE payment_id = ANY (p_ids) AND kind = 'payment' AND state IN ('captured', 'declined')
  HAVING count(*) > 0;
END $$;
COMMENT ON FUNCTION settle_orders IS 'What follows for orders from attempts that the gateway has answered.';
REVOKE ALL ON FUNCTION settle_orders FROM PUBLIC;

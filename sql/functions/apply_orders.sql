-- apply_orders(token, now, ids, worker): serves the orders of a batch one after the other, the oldest first: it reads stock
-- and wallets again under the claim, decides, and writes every effect. The users and SKUs of all orders must have been
-- claimed by an earlier statement of the transaction; an order without is an error, and so is an effect that is missing.
-- An order is rejected when a line asks for more than is left on hand and not held, or when its total is above what is left of the
-- wallet; else it is fulfilled. Quantities are summed per SKU first. An order of a user who pays by card is not fulfilled here: its
-- units are held, plan_payments writes the attempt that the job payments makes, and the order is paying until settle_orders knows
-- the answer.
-- The loop over arrays takes 20 % less CPU than window functions over the lines, and decides every order.
-- Rows are written at the place (ctid) at which they were read. The transaction is a row of
-- batches, which names every order that it decided, and none that it held.
-- The parameters and the columns are those of orders_apply_orders; effects are the orders that carry the token.
-- Guards: users.fence and stock.fence <= p_token; state of the order, which no update leaves once it is decided;
-- on_hand >= 0; balance >= 0.
CREATE OR REPLACE FUNCTION apply_orders(
  p_token bigint, p_now timestamptz, p_ids bigint[], p_worker text,
  OUT fulfilled bigint, OUT rejected bigint, OUT planned bigint, OUT due_again bigint, OUT effects bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := coalesce(p_now, now());
  -- The orders, oldest first; v_wallet_of[i] is an index of wallets.
  v_ids bigint[]; v_places tid[]; v_totals bigint[]; v_wallet_of int[];
  -- Their lines in the same order: v_order_of[l] is an index of ids, v_shelf_of[l] one of skus.
  v_order_of int[]; v_shelf_of int[]; v_qty bigint[];
  -- The wallets and the stock: what was read, and what is left.
  v_wallets bigint[]; v_wallet_places tid[]; v_balance bigint[]; v_money bigint[]; v_is_payer boolean[]; v_by_card boolean[];
  v_skus bigint[]; v_names text[]; v_stock_places tid[]; v_free bigint[]; v_units bigint[]; v_held bigint[];
  v_is_fulfilled boolean[]; v_is_held boolean[];
  -- SKUs that are short: v_shorts[v_short_from[i] : v_short_to[i]] of order i; null: none.
  v_shorts text[] := '{}'; v_short_from int[]; v_short_to int[];
  v_orders int; v_lines int; v_first int; v_next int := 1; v_shorts_before int; v_done int := 0; v_holds int := 0;
  v_decided bigint; v_written bigint; v_rows bigint; -- how many rows of all tables
BEGIN
  PERFORM check_batch(p_token, p_now);
  WITH o AS MATERIALIZED (
    SELECT (row_number() OVER (ORDER BY o.placed_at, o.order_id))::int AS i, o.*
      FROM unnest(p_ids) AS asked (id)
     CROSS JOIN LATERAL (SELECT order_id, ctid AS place, placed_at, user_id, total_minor, state FROM orders
                          WHERE order_id = asked.id OFFSET 0) AS o -- OFFSET 0: one index scan for each, also with wrong statistics
     WHERE o.state = 'pending' AND o.placed_at <= v_now
  ), u AS MATERIALIZED (
    SELECT (row_number() OVER ())::int AS i, u.*
      FROM (SELECT DISTINCT user_id FROM o) AS asked
     CROSS JOIN LATERAL (SELECT user_id, ctid AS place, balance_minor, card_customer IS NOT NULL AS by_card FROM users
                          WHERE user_id = asked.user_id AND fence <= p_token OFFSET 0) AS u
  ), l AS MATERIALIZED (
    SELECT o.i, l.*
      FROM o
     CROSS JOIN LATERAL (SELECT sku_id, sum(qty)::bigint AS qty FROM order_lines
                          WHERE order_id = o.order_id GROUP BY sku_id) AS l
  ), s AS MATERIALIZED (
    SELECT (row_number() OVER ())::int AS i, s.*
      FROM (SELECT DISTINCT sku_id FROM l) AS asked
     CROSS JOIN LATERAL (SELECT sku_id, ctid AS place, sku, on_hand - held AS free FROM stock
                          WHERE sku_id = asked.sku_id AND fence <= p_token OFFSET 0) AS s
  )
  SELECT a.*, b.*, c.*, d.*
    INTO v_ids, v_places, v_totals, v_wallet_of, v_order_of, v_shelf_of, v_qty,
         v_wallets, v_wallet_places, v_balance, v_by_card, v_skus, v_names, v_stock_places, v_free
    FROM (SELECT array_agg(order_id), array_agg(place), array_agg(total_minor), array_agg(wallet)
            FROM (SELECT o.*, u.i AS wallet FROM o LEFT JOIN u USING (user_id) ORDER BY o.i) AS sorted) AS a,
         (SELECT array_agg(i), array_agg(shelf), array_agg(qty)
            FROM (SELECT l.i, s.i AS shelf, l.qty FROM l LEFT JOIN s USING (sku_id) ORDER BY l.i, s.sku) AS sorted) AS b,
         (SELECT array_agg(user_id ORDER BY i), array_agg(place ORDER BY i), array_agg(balance_minor ORDER BY i), array_agg(by_card ORDER BY i)
            FROM u) AS c,
         (SELECT array_agg(sku_id ORDER BY i), array_agg(sku ORDER BY i), array_agg(place ORDER BY i), array_agg(free ORDER BY i)
            FROM s) AS d;
  IF array_position(v_wallet_of, NULL) IS NOT NULL OR array_position(v_shelf_of, NULL) IS NOT NULL THEN
    RAISE EXCEPTION 'a user or a SKU of the orders is absent, or carries a fence above %', p_token USING ERRCODE = 'internal_error';
  END IF;

  v_orders := coalesce(cardinality(v_ids), 0);
  v_lines := coalesce(cardinality(v_qty), 0);
  v_money := v_balance;
  v_units := v_free;
  v_held := array_fill(0::bigint, ARRAY[coalesce(cardinality(v_skus), 0)]);
  v_is_fulfilled := array_fill(false, ARRAY[v_orders]);
  v_is_held := v_is_fulfilled;
  v_short_from := array_fill(NULL::int, ARRAY[v_orders]);
  v_short_to := v_short_from;
  v_is_payer := array_fill(false, ARRAY[coalesce(cardinality(v_wallets), 0)]);
  FOR i IN 1 .. v_orders LOOP
    v_first := v_next;
    v_shorts_before := cardinality(v_shorts);
    WHILE v_next <= v_lines AND v_order_of[v_next] = i LOOP
      IF v_units[v_shelf_of[v_next]] < v_qty[v_next] THEN
        v_shorts := v_shorts || v_names[v_shelf_of[v_next]];
      END IF;
      v_next := v_next + 1;
    END LOOP;
    IF cardinality(v_shorts) > v_shorts_before THEN
      v_short_from[i] := v_shorts_before + 1;
      v_short_to[i] := cardinality(v_shorts);
      CONTINUE;
    END IF;
    IF v_by_card[v_wallet_of[i]] AND v_totals[i] > 0 THEN
      v_is_held[i] := true;
      v_holds := v_holds + 1;
    ELSE
      CONTINUE WHEN v_money[v_wallet_of[i]] < v_totals[i];
      v_is_fulfilled[i] := true;
      v_done := v_done + 1;
      v_money[v_wallet_of[i]] := v_money[v_wallet_of[i]] - v_totals[i];
      v_is_payer[v_wallet_of[i]] := true;
    END IF;
    FOR l IN v_first .. v_next - 1 LOOP
      v_units[v_shelf_of[l]] := v_units[v_shelf_of[l]] - v_qty[l];
      IF v_is_held[i] THEN
        v_held[v_shelf_of[l]] := v_held[v_shelf_of[l]] + v_qty[l];
      END IF;
    END LOOP;
  END LOOP;

  UPDATE orders AS o
     SET state = CASE WHEN d.is_fulfilled THEN 'fulfilled' WHEN d.is_held THEN 'paying' ELSE 'rejected' END,
         reason = CASE WHEN d.short_to IS NOT NULL THEN 'out_of_stock' WHEN NOT d.is_fulfilled AND NOT d.is_held THEN 'insufficient_funds' END,
         skus = CASE WHEN d.short_to IS NOT NULL THEN v_shorts[d.short_from : d.short_to] END, decided_at = CASE WHEN NOT d.is_held THEN v_now END, fence = p_token, by_card = d.is_held
    FROM unnest(v_ids, v_places, v_is_fulfilled, v_is_held, v_short_from, v_short_to)
         AS d (id, place, is_fulfilled, is_held, short_from, short_to)
   WHERE o.order_id = d.id
     AND o.ctid = d.place
     AND o.state = 'pending';
  GET DIAGNOSTICS v_written = ROW_COUNT;
  UPDATE stock AS s
     SET on_hand = s.on_hand - (d.free - d.units - d.held), held = s.held + d.held, fence = p_token
    FROM unnest(v_skus, v_stock_places, v_free, v_units, v_held) AS d (id, place, free, units, held)
   WHERE d.units < d.free AND s.sku_id = d.id
     AND s.ctid = d.place
     AND s.on_hand - s.held = d.free;
  GET DIAGNOSTICS v_rows = ROW_COUNT;
  v_written := v_written + v_rows;
  UPDATE users AS u
     SET balance_minor = d.money, fence = p_token
    FROM unnest(v_wallets, v_wallet_places, v_balance, v_money, v_is_payer) AS d (id, place, balance, money, is_payer)
   WHERE d.is_payer AND u.user_id = d.id
     AND u.ctid = d.place
     AND u.balance_minor = d.balance;
  GET DIAGNOSTICS v_rows = ROW_COUNT;
  v_written := v_written + v_rows;
  IF v_holds > 0 THEN
    v_written := v_written + (SELECT plan_payments('payment', array_agg(order_id), array_agg(0::bigint), array_agg(placed_at), array_agg(total_minor),
                                                   p_token, p_worker, v_now)
                                FROM unnest(v_ids, v_is_held) AS d (id, is_held) JOIN orders ON order_id = d.id WHERE d.is_held);
    v_ids := ARRAY(SELECT id FROM unnest(v_ids, v_is_held) AS d (id, is_held) WHERE NOT is_held);
  END IF;
  IF v_orders > 0 THEN
    INSERT INTO batches (job, token, worker, at, done, refused, ids, feed_no)
    VALUES ('orders', p_token, p_worker, v_now, v_done, v_orders - v_holds - v_done, v_ids, next_feed_no());
    GET DIAGNOSTICS v_rows = ROW_COUNT;
    v_written := v_written + v_rows;
  END IF;

  SELECT v_orders + (v_orders > 0)::int + v_holds
                  + (SELECT count(*) FROM unnest(v_free, v_units) AS s (before, rest) WHERE rest < before)
                  + cardinality(array_positions(v_is_payer, true)) INTO v_decided;
  IF v_decided <> v_written THEN
    RAISE EXCEPTION 'decided and written differ: % and %', v_decided, v_written USING ERRCODE = 'internal_error';
  END IF;
  fulfilled := v_done;
  rejected := v_orders - v_holds - v_done;
  planned := v_holds;
  due_again := 0;
  effects := v_orders;
END $$;
COMMENT ON FUNCTION apply_orders IS
  'Serves the orders of a batch, whose users and SKUs the transaction has claimed, the oldest first. Errors: LL002 bad argument, XX000 not all that was decided could be written.';
REVOKE ALL ON FUNCTION apply_orders FROM PUBLIC;
GRANT EXECUTE ON FUNCTION apply_orders TO ledgerlock_worker;

-- place_order(user, key, lines, at): client function. lines: [{"sku": "A-1", "qty": 2}, ...]; `at`, from when the order
-- is served, is at most a day from now().
-- Returns the order_id. The same key with the same lines, in any order, returns the same order again; with other lines
-- it is an error (SQLSTATE LL001). The key of another user is another order.
-- The order is only recorded: money and stock move when a worker serves it. An order with an unknown SKU is rejected
-- at once. Prices are read once, so the total is that of the lines, whatever price changes meanwhile.
CREATE OR REPLACE FUNCTION place_order(
  p_user_id bigint, p_idempotency_key text, p_lines jsonb, p_at timestamptz DEFAULT now())
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_currency text;
  v_closed_at timestamptz;
  v_priced   record;
  v_hash     bytea;
  v_order    orders%ROWTYPE;
BEGIN
  IF coalesce(p_idempotency_key, '') = '' OR length(p_idempotency_key) > 255 THEN
    RAISE EXCEPTION 'idempotency key must have 1 to 255 characters' USING ERRCODE = 'LL002';
  END IF;
  IF jsonb_typeof(p_lines) IS DISTINCT FROM 'array' OR jsonb_array_length(p_lines) = 0 THEN
    RAISE EXCEPTION 'lines must be a JSON array with at least one line' USING ERRCODE = 'LL002';
  END IF;
  IF EXISTS (SELECT FROM jsonb_array_elements(p_lines) AS l
             WHERE jsonb_typeof(l -> 'sku') IS DISTINCT FROM 'string'
                OR jsonb_typeof(l -> 'qty') IS DISTINCT FROM 'number'
                OR NOT (l ->> 'qty') ~ '^[1-9][0-9]{0,9}$') THEN
    RAISE EXCEPTION 'every line needs a sku (text) and a qty (whole number from 1)' USING ERRCODE = 'LL002';
  END IF;
  SELECT currency, closed_at INTO v_currency, v_closed_at FROM users WHERE user_id = p_user_id FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'user % does not exist', p_user_id USING ERRCODE = 'LL002';
  END IF;
  UPDATE orders SET reason = reason WHERE false; -- locks the table as the INSERT: close-month waits for this order, or this sees that it closed
  v_hash := order_hash(p_lines);
  SELECT * INTO v_order FROM orders WHERE user_id = p_user_id AND idempotency_key = p_idempotency_key;
  IF NOT FOUND THEN
    PERFORM check_time('the time of an order', p_at, interval '24 hours', interval '24 hours');
    IF p_at < clock_timestamp() - interval '24 hours' AND p_at < keep_first_open() THEN -- no month is closed before that
      RAISE EXCEPTION 'an order cannot be placed in a month that is closed' USING ERRCODE = 'LL004';
    END IF;
    IF v_closed_at IS NOT NULL THEN
      RAISE EXCEPTION 'the account of user % is closed', p_user_id USING ERRCODE = 'LL003';
    END IF;
    SELECT count(*) AS skus, array_agg(asked.sku ORDER BY asked.sku) FILTER (WHERE s.sku_id IS NULL) AS unknown,
           array_agg(s.sku_id ORDER BY s.sku_id) FILTER (WHERE s.sku_id IS NOT NULL) AS sku_ids,
           array_agg(s.unit_price_minor ORDER BY s.sku_id) FILTER (WHERE s.sku_id IS NOT NULL) AS prices,
           array_agg(asked.qty ORDER BY s.sku_id) FILTER (WHERE s.sku_id IS NOT NULL) AS qtys,
           coalesce(sum(asked.qty * s.unit_price_minor), 0) AS total,
           coalesce(bool_or(s.currency <> v_currency), false) AS is_foreign
      INTO v_priced
      FROM (SELECT l ->> 'sku' AS sku, sum((l ->> 'qty')::bigint) AS qty
              FROM jsonb_array_elements(p_lines) AS l GROUP BY l ->> 'sku') AS asked
      LEFT JOIN stock AS s ON s.sku = asked.sku;
    IF v_priced.skus > 999 THEN
      RAISE EXCEPTION 'an order has at most 999 different SKUs' USING ERRCODE = 'LL002',
        HINT = 'A batch locks the user and every SKU of an order in one call of at most 1000 keys.';
    END IF;
    IF v_priced.is_foreign THEN
      RAISE EXCEPTION 'a line is priced in another currency than the wallet (%)', v_currency USING ERRCODE = 'LL002';
    END IF;
    IF v_priced.total > 9223372036854775807 THEN
      RAISE EXCEPTION 'the total of the order does not fit into 64 bits' USING ERRCODE = 'LL002';
    END IF;
    IF v_priced.unknown IS NOT NULL THEN
      p_at := least(p_at, now()); -- it is decided here, and nothing is decided in the future
    END IF;
    INSERT INTO orders (user_id, idempotency_key, request_hash, state, reason, skus,
                        total_minor, currency, placed_at, decided_at)
    VALUES (p_user_id, p_idempotency_key, v_hash,
            CASE WHEN v_priced.unknown IS NULL THEN 'pending' ELSE 'rejected' END,
            CASE WHEN v_priced.unknown IS NOT NULL THEN 'unknown_sku' END, v_priced.unknown,
            v_priced.total, v_currency, p_at, CASE WHEN v_priced.unknown IS NOT NULL THEN p_at END)
    ON CONFLICT (user_id, idempotency_key) DO NOTHING
    RETURNING * INTO v_order;
    IF FOUND THEN
      INSERT INTO order_lines (order_id, sku_id, unit_price_minor, qty)
      SELECT v_order.order_id, * FROM unnest(v_priced.sku_ids, v_priced.prices, v_priced.qtys);
      RETURN v_order.order_id;
    END IF;
    SELECT * INTO v_order FROM orders WHERE user_id = p_user_id AND idempotency_key = p_idempotency_key; -- placed meanwhile
  END IF;
  IF v_order.request_hash <> v_hash THEN
    RAISE EXCEPTION 'idempotency key "%" was used for another order of this user', p_idempotency_key
      USING ERRCODE = 'LL001', HINT = 'Use a new key for a new order.';
  END IF;
  RETURN v_order.order_id;
END $$;
COMMENT ON FUNCTION place_order IS
  'Places an order once per (user, idempotency key) and returns its order_id. Errors: LL001 key used with other lines, LL002 bad argument, LL003 the account is closed, LL004 the month is closed.';
REVOKE ALL ON FUNCTION place_order FROM PUBLIC;
GRANT EXECUTE ON FUNCTION place_order TO ledgerlock_shop;

-- place_order(user, key, lines, at): the clients' door. lines: [{"sku": "A-1", "qty": 2}, ...].
-- Returns the order_id. The same key with the same lines returns the same order again; with other lines
-- it is an error (SQLSTATE LL001). The key of another user is another order.
-- Records only: money and stock move when a worker serves the order. An unknown SKU rejects at once.
CREATE OR REPLACE FUNCTION ledgerlock.place_order(
  p_user_id bigint, p_idempotency_key text, p_lines jsonb, p_at timestamptz DEFAULT now())
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = ledgerlock, pg_temp AS $$
DECLARE
  v_hash     bytea := sha256(convert_to(p_lines::text, 'UTF8'));
  v_currency text;
  v_unknown  text[];
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
  IF (SELECT count(DISTINCT l ->> 'sku') FROM jsonb_array_elements(p_lines) AS l) > 999 THEN
    RAISE EXCEPTION 'an order has at most 999 different SKUs' USING ERRCODE = 'LL002',
      HINT = 'A batch locks the user and every SKU of an order in one call of at most 1000 keys.';
  END IF;
  SELECT currency INTO v_currency FROM users WHERE user_id = p_user_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'user % does not exist', p_user_id USING ERRCODE = 'LL002';
  END IF;
  IF EXISTS (SELECT FROM jsonb_array_elements(p_lines) AS l JOIN stock ON stock.sku = l ->> 'sku'
             WHERE stock.currency <> v_currency) THEN
    RAISE EXCEPTION 'a line is priced in another currency than the wallet (%)', v_currency USING ERRCODE = 'LL002';
  END IF;

  SELECT array_agg(DISTINCT l ->> 'sku' ORDER BY l ->> 'sku') INTO v_unknown
    FROM jsonb_array_elements(p_lines) AS l
   WHERE NOT EXISTS (SELECT FROM stock WHERE stock.sku = l ->> 'sku');

  INSERT INTO orders AS o (user_id, idempotency_key, request_hash, state, reason, skus,
                           total_minor, currency, bucket, placed_at, decided_at)
  SELECT p_user_id, p_idempotency_key, v_hash,
         CASE WHEN v_unknown IS NULL THEN 'pending' ELSE 'rejected' END,
         CASE WHEN v_unknown IS NOT NULL THEN 'unknown_sku' END, v_unknown,
         coalesce(sum((l ->> 'qty')::bigint * s.unit_price_minor), 0), v_currency,
         coalesce(min(s.sku_id) % 64, 0), p_at, CASE WHEN v_unknown IS NOT NULL THEN p_at END
    FROM jsonb_array_elements(p_lines) AS l LEFT JOIN stock AS s ON s.sku = l ->> 'sku'
  ON CONFLICT (user_id, idempotency_key) DO NOTHING
  RETURNING o.* INTO v_order;

  IF NOT FOUND THEN
    SELECT * INTO v_order FROM orders WHERE user_id = p_user_id AND idempotency_key = p_idempotency_key;
    IF v_order.request_hash <> v_hash THEN
      RAISE EXCEPTION 'idempotency key "%" was used for another order of this user', p_idempotency_key
        USING ERRCODE = 'LL001', HINT = 'Use a new key for a new order.';
    END IF;
    RETURN v_order.order_id;
  END IF;

  INSERT INTO order_lines (order_id, sku_id, unit_price_minor, qty)
  SELECT v_order.order_id, s.sku_id, s.unit_price_minor, sum((l ->> 'qty')::bigint)
    FROM jsonb_array_elements(p_lines) AS l JOIN stock AS s ON s.sku = l ->> 'sku'
   GROUP BY s.sku_id, s.unit_price_minor
   ORDER BY s.sku_id;
  IF v_unknown IS NULL THEN
    PERFORM announce_work();
  END IF;
  RETURN v_order.order_id;
END $$;
COMMENT ON FUNCTION ledgerlock.place_order IS
  'Places an order once per (user, idempotency key) and returns its order_id. Errors: LL001 key used with other lines, LL002 bad argument.';
REVOKE ALL ON FUNCTION ledgerlock.place_order FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ledgerlock.place_order TO ledgerlock_client;

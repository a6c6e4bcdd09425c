-- decisions_since(cursor, limit): the decisions behind the cursor, in the order of the feed; null: from the first one on. Each row
-- has the cursor to go on behind it. Every order that is fulfilled, rejected or cancelled and every charge that is captured or
-- declined comes once. A parked order is not decided.
-- No decision is given out while a transaction with a lower number is open (feed_end), so none that is committed later is
-- missed. Horizon and rows are of one snapshot, that of the caller's statement: the function is STABLE.
-- A batch names its orders, or its subscriptions and their periods; a try that the charge does not keep is an event.
-- A cursor is the number of the transaction and that of the decision in it: of its event, and in a batch one below
-- zero, so that the two never meet. Locks: none.
CREATE OR REPLACE FUNCTION decisions_since(p_cursor text DEFAULT NULL, p_limit bigint DEFAULT 100)
RETURNS TABLE (cursor text, decision text, user_id bigint, order_id bigint, idempotency_key text, subscription_id bigint,
               period_no bigint, try_no integer, amount_minor bigint, currency text, reason text, next_try_at timestamptz,
               at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
  v_end     bigint := feed_end();
  v_feed_no bigint := 0; -- the place behind which the answer begins
  v_no      bigint := 0;
  v_after   bigint; -- in the batch at hand
  v_left    bigint := p_limit;
  v_rows    bigint;
  v_part    record;
BEGIN
  PERFORM check_limit(p_limit);
  IF p_cursor !~ '^[0-9]{1,18}([.]-?[0-9]{1,18})?$' THEN
    RAISE EXCEPTION 'this is no cursor of decisions_since or decisions_from: "%"', left(p_cursor, 60) USING ERRCODE = 'LL002';
  ELSIF p_cursor IS NOT NULL THEN
    v_feed_no := split_part(p_cursor, '.', 1)::bigint;
    v_no := coalesce(nullif(split_part(p_cursor, '.', 2), '')::bigint, 9223372036854775807);
  END IF;
  IF v_feed_no >= v_end THEN
    RAISE EXCEPTION 'the cursor % is ahead of this database', p_cursor USING ERRCODE = 'LL002',
      HINT = 'The database was set back, or is a standby that lags, or the cursor is of another one. decisions_from gives the cursor of a time.';
  END IF;
  FOR v_part IN
    SELECT * FROM (
      (SELECT feed_no, NULL::bigint AS entry, job, token, ids, periods, at FROM batches
        WHERE feed_no >= v_feed_no AND feed_no < v_end
        ORDER BY feed_no LIMIT p_limit + 1)
       UNION ALL
      (SELECT feed_no, event_id, 'client', NULL, ARRAY[order_id], NULL, at FROM events
        WHERE feed_no >= v_feed_no AND feed_no < v_end AND (feed_no > v_feed_no OR event_id > v_no)
        ORDER BY feed_no, event_id LIMIT p_limit)) AS parts
     ORDER BY feed_no, entry NULLS FIRST
  LOOP
    v_after := CASE WHEN v_part.entry IS NULL AND v_part.feed_no = v_feed_no
                    THEN least(v_no, 0) + 1 + cardinality(v_part.ids) ELSE 0 END;
    IF v_part.periods IS NOT NULL THEN
      RETURN QUERY
      SELECT format('%s.%s', v_part.feed_no, d.n - 1 - cardinality(v_part.ids)), 'charge.' || coalesce(j.event, 'captured'), s.user_id, NULL::bigint, NULL::text,
             d.id, d.period, coalesce(j.try_no, 1), coalesce(j.amount_minor, c.amount_minor), s.currency::text,
             CASE j.event WHEN 'declined' THEN coalesce(j.reason, 'insufficient_funds') END, CASE j.state WHEN 'past_due' THEN j.next_due_at END,
             v_part.at
        FROM unnest(v_part.ids, v_part.periods) WITH ORDINALITY AS d (id, period, n)
        JOIN subscriptions AS s ON s.subscription_id = d.id
        LEFT JOIN LATERAL (SELECT event, try_no, amount_minor, state, next_due_at, reason FROM events
                            WHERE subscription_id = d.id AND token = v_part.token AND event IN ('declined', 'captured')
                              AND next_period_no - (event = 'captured')::int = d.period OFFSET 0) AS j ON true
        LEFT JOIN LATERAL (SELECT amount_minor FROM charges
                            WHERE subscription_id = d.id AND period_no = d.period AND j.event IS NULL
                              AND period_start = period_start(s.anchor_at, s.unit, s.every, d.period) OFFSET 0) AS c ON true
       WHERE d.n > v_after
       ORDER BY d.n LIMIT v_left;
    ELSE
      RETURN QUERY
      SELECT format('%s.%s', v_part.feed_no, coalesce(v_part.entry, d.n - 1 - cardinality(v_part.ids))), 'order.' || o.state, o.user_id, o.order_id,
             o.idempotency_key, NULL::bigint, NULL::bigint, NULL::integer, o.total_minor, o.currency::text, o.reason,
             NULL::timestamptz, v_part.at
        FROM unnest(v_part.ids) WITH ORDINALITY AS d (id, n)
        JOIN orders AS o ON o.order_id = d.id
       WHERE d.n > v_after
       ORDER BY d.n LIMIT v_left;
    END IF;
    GET DIAGNOSTICS v_rows = ROW_COUNT;
    v_left := v_left - v_rows;
    EXIT WHEN v_left = 0;
  END LOOP;
END $$;
COMMENT ON FUNCTION decisions_since IS
  'Each decision once, behind the cursor; null: from the first. Errors: LL002 no cursor, one that is ahead of the database, or a bad limit.';
REVOKE ALL ON FUNCTION decisions_since FROM PUBLIC;
GRANT EXECUTE ON FUNCTION decisions_since TO ledgerlock_shop, ledgerlock_support;

-- explain(kind, id): the life of an 'order' or a 'subscription', and what it waits for now, but for locks in Redis: keys names those
-- that it needs, as they are in Redis; a row that is not due needs none. Null: there is no such row. A row lock is found by xmax of
-- the row, the number of a transaction, or of several that share the lock, which pg_locks then has.
CREATE OR REPLACE FUNCTION explain(p_kind text, p_id bigint)
RETURNS jsonb LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET timezone = 'UTC' AS $$
DECLARE
  v_life  jsonb;
  v_waits jsonb;
  v_locks jsonb;
  v_user  bigint;   -- of the row, if it is due
  v_skus  bigint[]; -- that it needs then
  v_names text[];   -- of these rows,
  v_xmax  xid[];    -- who locked each; a statement about a distributed schema joins that with no view of the server
BEGIN
  IF p_kind = 'order' THEN
    SELECT jsonb_agg(jsonb_strip_nulls(to_jsonb(l))) INTO v_life FROM life_of_order(p_id) AS l;
    SELECT jsonb_agg(to_jsonb(w)) INTO v_waits FROM waits_of_order(p_id) AS w;
    SELECT user_id, array(SELECT DISTINCT sku_id FROM order_lines WHERE order_id = p_id) INTO v_user, v_skus
      FROM orders WHERE order_id = p_id AND state = 'pending' AND placed_at <= now();
  ELSIF p_kind = 'subscription' THEN
    SELECT jsonb_agg(jsonb_strip_nulls(to_jsonb(l))) INTO v_life FROM life_of_subscription(p_id) AS l;
    SELECT jsonb_agg(to_jsonb(w)) INTO v_waits FROM waits_of_subscription(p_id) AS w;
    SELECT user_id INTO v_user
      FROM subscriptions WHERE subscription_id = p_id AND state IN ('active', 'past_due') AND next_due_at <= now();
  ELSE
    RAISE EXCEPTION '% is neither order nor subscription', p_kind USING ERRCODE = 'LL002';
  END IF;
  IF v_waits IS NULL THEN
    RETURN NULL;
  END IF;
  SELECT array_agg('user:' || user_id), array_agg(xmax) INTO v_names, v_xmax FROM users WHERE user_id = v_user;
  SELECT v_names || array_agg('sku:' || sku_id), v_xmax || array_agg(xmax) INTO v_names, v_xmax FROM stock WHERE sku_id = ANY (v_skus);
  WITH locked AS (
    SELECT name, locker FROM unnest(v_names, v_xmax) AS l (name, locker)
  ), locker AS (
    SELECT name, locker AS xid FROM locked
    UNION ALL
    SELECT name, m.xid
      FROM locked,
           pg_get_multixact_members(CASE WHEN mxid_age(locker) BETWEEN 1 AND (SELECT max(mxid_age(datminmxid)) FROM pg_database)
                                         THEN locker END) AS m
     WHERE m.mode <> 'keysh'
  )
  SELECT jsonb_agg(jsonb_build_object('for', 'a row lock', 'detail',
           format('%s is locked by session %s (%s)%s', r.name, coalesce(l.pid::text, 'of a prepared transaction'),
                  coalesce(nullif(a.application_name, ''), 'without a name'),
                  coalesce(' since ' || to_char(a.xact_start, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), ''))) ORDER BY r.name, l.pid)
    INTO v_locks
    FROM locker AS r
    JOIN pg_locks AS l ON l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted AND l.transactionid = r.xid
                        AND l.pid IS DISTINCT FROM pg_backend_pid() -- of somebody else
    LEFT JOIN pg_stat_activity AS a USING (pid);
  RETURN jsonb_build_object('item', p_kind || ':' || p_id, 'life', coalesce(v_life, '[]'), 'waits', v_waits || coalesce(v_locks, '[]'),
           'keys', (SELECT coalesce(jsonb_agg(name), '[]')
                      FROM (SELECT 'user:' || v_user AS name WHERE v_user IS NOT NULL
                             UNION ALL
                            SELECT 'sku:' || sku_id FROM unnest(v_skus) AS sku_id) AS needed));
END $$;
COMMENT ON FUNCTION explain IS
  'The life of an order or a subscription, what it waits for, and the lock keys that it needs; null: there is none. Errors: LL002 neither kind.';
REVOKE ALL ON FUNCTION explain FROM PUBLIC;
GRANT EXECUTE ON FUNCTION explain TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;

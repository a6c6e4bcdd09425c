-- charge_again(subscriptions, periods, starts, states, tries, token, worker, now): later tries of declined periods, in
-- parallel arrays. Returns how many rows it wrote. For apply_charges, in which an UPDATE of charges would open the
-- partitions of all months at every batch, and for settle_payments; here one is planned for each month that has such a period.
CREATE OR REPLACE FUNCTION charge_again(
  p_subscription_ids bigint[], p_period_nos bigint[], p_starts timestamptz[], p_states text[], p_tries integer[],
  p_token bigint, p_worker text, p_now timestamptz)
RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  v_from timestamptz;
  v_to   timestamptz;
  v_n    bigint;
  v_all  bigint := 0;
BEGIN
  FOR v_from IN SELECT DISTINCT date_trunc('month', s, 'UTC') FROM unnest(p_starts) AS s LOOP
    v_to := (v_from AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC';
    UPDATE charges AS c
       SET state = d.state, tries = d.tries,
           fence = p_token, worker = p_worker, charged_at = p_now
      FROM unnest(p_subscription_ids, p_period_nos, p_starts, p_states, p_tries) AS d (id, no, starts, state, tries)
     CROSS JOIN LATERAL (SELECT ctid AS place FROM charges
                          WHERE subscription_id = d.id AND period_no = d.no AND period_start = d.starts
                            AND period_start >= v_from AND period_start < v_to
                         OFFSET 0) AS open -- OFFSET 0: one index scan for each, also with wrong statistics
     WHERE c.subscription_id = d.id AND c.period_no = d.no AND c.period_start = d.starts
       AND c.ctid = open.place
       AND c.period_start >= v_from AND c.period_start < v_to AND c.state = 'declined';
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_all := v_all + v_n;
  END LOOP;
  RETURN v_all;
END $$;
COMMENT ON FUNCTION charge_again IS 'Later tries of declined periods. Returns how many rows it wrote.';
REVOKE ALL ON FUNCTION charge_again FROM PUBLIC;

-- check_closable(month): refuses a month that cannot be closed: it is not there, closed, not the first that is open, not over for a day, or
-- something of it is open. For close_month, and for close-month before its audit.
CREATE OR REPLACE FUNCTION check_closable(p_month date)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT SET timezone = 'UTC' AS $$
DECLARE
  v_name   text := to_char(p_month, 'YYYY-MM');
  v_start  timestamptz := p_month;
  v_end    timestamptz := p_month + interval '1 month';
  v_first  date;
  v_subs   bigint;
  v_orders bigint;
BEGIN
  IF NOT EXISTS (SELECT FROM months WHERE month = p_month) THEN
    RAISE EXCEPTION 'there is no month %', v_name USING ERRCODE = 'LL002';
  END IF;
  IF v_start < first_open() THEN
    RAISE EXCEPTION 'the month % is closed already', v_name USING ERRCODE = 'LL003';
  END IF;
  SELECT min(month) INTO v_first FROM months WHERE month >= first_open();
  IF v_first < p_month THEN
    RAISE EXCEPTION 'the month % is open: months are closed in their order', to_char(v_first, 'YYYY-MM')
      USING ERRCODE = 'LL003', HINT = format('Close %s before %s.', to_char(v_first, 'YYYY-MM'), v_name);
  END IF;
  IF now() < v_end + interval '1 day 1 minute' THEN -- the minute: close-month waited for writers before this transaction
    RAISE EXCEPTION 'the month % is not over for a day yet', v_name USING ERRCODE = 'LL003';
  END IF;
  SELECT count(*) INTO v_subs FROM subscriptions
   WHERE state <> 'cancelled' AND (state <> 'active' OR next_due_at < v_end)
     AND period_start(anchor_at, unit, every, next_period_no) < least(v_end, cancel_at);
  SELECT count(*) INTO v_orders FROM orders WHERE state IN ('pending', 'paying', 'parked') AND placed_at < v_end;
  IF v_subs + v_orders > 0 THEN
    RAISE EXCEPTION 'the month % has % subscriptions with a period that is not settled, and % orders that are not decided',
      v_name, v_subs, v_orders
      USING ERRCODE = 'LL003', HINT = 'Let a pool work them, or cancel, resume or release them; ledgerlock parked lists what is parked.';
  END IF;
END $$;
COMMENT ON FUNCTION check_closable IS 'Refuses a month that cannot be closed. Errors: LL002 there is no such month, LL003 something of it is open.';
REVOKE ALL ON FUNCTION check_closable FROM PUBLIC;

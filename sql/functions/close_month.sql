-- close_month(month): seals a month: stores its sums, and makes its rows unchangeable, for the owner, too. Returns the number
-- of rows. Nothing opens a month again: a correction is a new entry in an open month.
-- Refused while something of the month is open (SQLSTATE LL003). `ledgerlock close-month` proves every invariant of the
-- open months first, in the same transaction, and has locked the partitions before its snapshot was taken.
CREATE OR REPLACE FUNCTION close_month(p_month date)
RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT SET timezone = 'UTC' AS $$
DECLARE
  v_name  text := to_char(p_month, 'YYYY-MM');
  v_start timestamptz := p_month;
  v_end   timestamptz := p_month + interval '1 month';
  v_first date;
  v_subs  bigint;
  v_orders bigint;
  v_rows  bigint;
  v_part  text := 'charges' || to_char(p_month, '_YYYY_MM');
BEGIN
  IF NOT EXISTS (SELECT FROM months WHERE month = p_month) THEN
    RAISE EXCEPTION 'there is no month %', v_name USING ERRCODE = 'LL003', HINT = 'Nothing was ever booked in it.';
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
  SELECT count(*) INTO v_orders FROM orders WHERE state IN ('pending', 'parked') AND placed_at < v_end;
  IF v_subs + v_orders > 0 THEN
    RAISE EXCEPTION 'the month % has % subscriptions with a period that is not settled, and % orders that are not decided',
      v_name, v_subs, v_orders
      USING ERRCODE = 'LL003', HINT = 'Let a pool work them, or cancel, resume or release them; ledgerlock parked lists what is parked.';
  END IF;

  v_start := first_open(); -- what is before the first month that has one, too
  INSERT INTO seals (month, table_name, kind, currency, row_ct, total, checksum)
  SELECT p_month, s.table_name, s.kind, s.currency, s.row_ct, s.total, s.checksum FROM month_sums(p_month) AS s;
  INSERT INTO seals (month, table_name, kind, currency, row_ct, total, checksum)
  SELECT p_month, 'months', '', '', count(*), coalesce(sum(row_ct), 0), coalesce(sum(checksum), 0) FROM seals WHERE month = p_month
  RETURNING total INTO v_rows;

  PERFORM set_config('ledgerlock.repair', 'on', true); -- the three tables below change by this function alone
  INSERT INTO sealed_wallets AS w (user_id, currency, net_minor)
  SELECT user_id, min(currency), sum(CASE credit WHEN 'wallet' THEN amount_minor ELSE 0 END
                                     - CASE debit WHEN 'wallet' THEN amount_minor ELSE 0 END)
    FROM ledger WHERE source_at >= v_start AND source_at < v_end GROUP BY user_id
  ON CONFLICT (user_id) DO UPDATE SET net_minor = w.net_minor + excluded.net_minor;
  INSERT INTO sealed_stock AS s (sku_id, received, returned, adjusted, sold)
  SELECT sku_id, coalesce(sum(qty) FILTER (WHERE kind = 'receive'), 0), coalesce(sum(qty) FILTER (WHERE kind = 'return'), 0),
         coalesce(sum(qty) FILTER (WHERE kind = 'adjust'), 0), coalesce(-sum(qty) FILTER (WHERE kind = 'sale'), 0)
    FROM stock_ledger WHERE source_at >= v_start AND source_at < v_end GROUP BY sku_id
  ON CONFLICT (sku_id) DO UPDATE SET received = s.received + excluded.received, returned = s.returned + excluded.returned,
                                     adjusted = s.adjusted + excluded.adjusted, sold = s.sold + excluded.sold;
  DELETE FROM sealed_batches WHERE at < v_end;
  INSERT INTO sealed_batches AS b (token, at, worker, done)
  SELECT fence, charged_at, worker, count(*) FROM charges
   WHERE period_start >= v_start AND period_start < v_end AND state = 'captured' AND charged_at >= v_end
   GROUP BY fence, charged_at, worker
  ON CONFLICT (token, at, worker) DO UPDATE SET done = b.done + excluded.done;
  PERFORM set_config('ledgerlock.repair', 'off', true);

  EXECUTE format('CREATE TRIGGER month_is_closed BEFORE DELETE ON %I FOR EACH ROW EXECUTE FUNCTION refuse_closed()', v_part);
  EXECUTE format('CREATE TRIGGER month_stays_closed BEFORE TRUNCATE ON %I FOR EACH STATEMENT
                  EXECUTE FUNCTION refuse_closed()', v_part);
  EXECUTE format('ALTER TABLE %I ADD CONSTRAINT month_is_closed CHECK (false) NOT VALID', v_part);
  RETURN v_rows;
END $$;
COMMENT ON FUNCTION close_month IS
  'Seals a month that is over and returns how many rows it has. Errors: LL003 something of it is open.';
REVOKE ALL ON FUNCTION close_month FROM PUBLIC;

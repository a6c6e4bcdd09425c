-- close_month(month, digest): seals a month: stores its sums, and makes its rows unchangeable, for the owner, too. Returns the number
-- of rows. Nothing opens a month again: a correction is a new entry in an open month.
-- Refused while something of the month is open (SQLSTATE LL003). `ledgerlock close-month` proves every invariant of the open months
-- before, in a transaction that holds nothing, and gives the month_digest of that snapshot: another one now is a serialization failure
-- (40001). The verb has locked the partition and seals before the snapshot of this transaction was taken.
CREATE OR REPLACE FUNCTION close_month(p_month date, p_digest text DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT SET timezone = 'UTC' AS $$
DECLARE
  v_start timestamptz := first_open(); -- what is before the first month that has one, too
  v_end   timestamptz := p_month + interval '1 month';
  v_rows  bigint;
  v_part  text := 'charges' || to_char(p_month, '_YYYY_MM');
BEGIN
  PERFORM check_closable(p_month);
  IF p_digest <> month_digest(p_month) THEN
    RAISE serialization_failure USING MESSAGE = format('rows of %s were written since it was proved', to_char(p_month, 'YYYY-MM'));
  END IF;
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
  SELECT sku_id, coalesce(sum(qty) FILTER (WHERE kind = 'delivery'), 0), coalesce(sum(qty) FILTER (WHERE kind = 'return'), 0),
         coalesce(sum(qty) FILTER (WHERE kind = 'adjustment'), 0), coalesce(-sum(qty) FILTER (WHERE kind = 'sale'), 0)
    FROM stock_ledger WHERE source_at >= v_start AND source_at < v_end GROUP BY sku_id
  ON CONFLICT (sku_id) DO UPDATE SET received = s.received + excluded.received, returned = s.returned + excluded.returned,
                                     adjusted = s.adjusted + excluded.adjusted, sold = s.sold + excluded.sold;
  DELETE FROM sealed_batches WHERE at < v_end;
  INSERT INTO sealed_batches AS b (token, at, worker, done)
  SELECT fence, charged_at, worker, count(*) FROM charges
   WHERE period_start >= v_start AND period_start < v_end AND state IN ('captured', 'paid') AND charged_at >= v_end
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
  'Seals a month that is over and returns how many rows it has. Errors: LL002 there is no such month, LL003 something of it is open, 40001 it is not as it was proved.';
REVOKE ALL ON FUNCTION close_month FROM PUBLIC;

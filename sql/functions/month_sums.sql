-- month_sums(month): what the rows of a month add up to, by table, kind (state of a charge; kind and both
-- accounts of a transfer) and currency. close_month stores
-- it, audit --sealed holds it against what is stored. The checksum adds up a hash of each row, whatever their order.
CREATE OR REPLACE FUNCTION month_sums(p_month date)
RETURNS TABLE (table_name text, kind text, currency text, row_ct bigint, total numeric, checksum numeric)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
  SELECT 'charges', state, '', count(*), sum(amount_minor)::numeric,
         sum(hash_record_extended(ROW(subscription_id, period_no, user_id, period_start, period_end, amount_minor, state, tries,
                                      fence, worker, charged_at), 0)::numeric)
    FROM charges
   WHERE period_start >= p_month::timestamp AT TIME ZONE 'UTC'
     AND period_start < (p_month + interval '1 month') AT TIME ZONE 'UTC'
   GROUP BY state
   UNION ALL
  SELECT 'stock_movements', kind, '', count(*), sum(qty)::numeric,
         sum(hash_record_extended(ROW(sku_id, kind, source, qty, fence, moved_at, source_at), 0)::numeric)
    FROM stock_movements
   WHERE source_at >= p_month::timestamp AT TIME ZONE 'UTC' AND source_at < (p_month + interval '1 month') AT TIME ZONE 'UTC'
   GROUP BY kind
   UNION ALL
  SELECT 'transfers', format('%s %s-%s', kind, debit, credit), currency, count(*), sum(amount_minor)::numeric,
         sum(hash_record_extended(ROW(kind, source, leg, user_id, source_at, debit, credit, amount_minor, currency, moved_at),
                                  0)::numeric)
    FROM transfers
   WHERE source_at >= p_month::timestamp AT TIME ZONE 'UTC' AND source_at < (p_month + interval '1 month') AT TIME ZONE 'UTC'
   GROUP BY kind, debit, credit, currency
$$;
COMMENT ON FUNCTION month_sums IS 'What the rows of a month add up to, by table, kind and currency.';
REVOKE ALL ON FUNCTION month_sums FROM PUBLIC;
GRANT EXECUTE ON FUNCTION month_sums TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;

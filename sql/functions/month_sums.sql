-- month_sums(month): what the rows of a month add up to, by table, kind (state of a charge; kind and both accounts of an entry of
-- ledger) and currency. The first month that is closed counts what is before it, too. close_month stores the sums, audit
-- --sealed holds them against what is stored. The checksum adds up a hash of each row, whatever their order.
CREATE OR REPLACE FUNCTION month_sums(p_month date)
RETURNS TABLE (table_name text, kind text, currency text, row_ct bigint, total numeric, checksum numeric)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
  WITH span AS MATERIALIZED (
    SELECT coalesce((SELECT (max(month) + interval '1 month') AT TIME ZONE 'UTC' FROM seals WHERE month < p_month), '-infinity') AS first,
           (p_month + interval '1 month') AT TIME ZONE 'UTC' AS last
  )
  SELECT 'charges', state, '', count(*), sum(amount_minor)::numeric,
         sum(hash_record_extended(ROW(subscription_id, period_no, user_id, period_start, period_end, amount_minor, state, tries,
                                      fence, worker, charged_at), 0)::numeric)
    FROM charges
   WHERE period_start >= p_month::timestamp AT TIME ZONE 'UTC'
     AND period_start < (p_month + interval '1 month') AT TIME ZONE 'UTC'
   GROUP BY state
   UNION ALL
  SELECT 'stock_ledger', kind, '', count(*), sum(qty)::numeric,
         sum(hash_record_extended(ROW(sku_id, kind, source, qty, token, moved_at, source_at), 0)::numeric)
    FROM stock_ledger
   WHERE source_at >= (SELECT first FROM span) AND source_at < (SELECT last FROM span)
   GROUP BY kind
   UNION ALL
  SELECT 'ledger', format('%s %s-%s', kind, debit, credit), currency, count(*), sum(amount_minor)::numeric,
         sum(hash_record_extended(ROW(kind, source, leg, user_id, source_at, debit, credit, amount_minor, currency, moved_at,
                                      token), 0)::numeric)
    FROM ledger
   WHERE source_at >= (SELECT first FROM span) AND source_at < (SELECT last FROM span)
   GROUP BY kind, debit, credit, currency
$$;
COMMENT ON FUNCTION month_sums IS 'What the rows of a month add up to, by table, kind and currency.';
REVOKE ALL ON FUNCTION month_sums FROM PUBLIC;
GRANT EXECUTE ON FUNCTION month_sums TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;

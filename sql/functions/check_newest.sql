-- check_newest(now, pages): what would be seen first if a guard failed, for a page that is looked at all the time. The function trusts no
-- key and no CHECK. Of each month that is not closed it reads the last pages of charges, transfers and movements, and of the
-- rows written there in the five minutes before `now` (null: the clock)
--   charged_twice  charges, payments and sales that have others of the same period, order, or order and SKU: those beyond the first
--   wrong_totals   wallets of the last 20 transfers of each month that are not the sum of theirs, and SKUs likewise
--   oversold       units that were sold and were never there, of all SKUs; -1: there are too many to be counted here
-- Rows of the same key are found by the key of their month, transfers of a wallet by subscription, order and correction. A user of more
-- than 1,000 orders, and all SKUs once stock and movements take more than 100 times those pages, are left to the audit.
CREATE OR REPLACE FUNCTION check_newest(p_now timestamptz, p_pages integer)
RETURNS TABLE (charges bigint, wallets bigint, skus bigint, charged_twice bigint, oversold bigint, wrong_totals bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
  v_since  timestamptz := coalesce(p_now, now()) - interval '5 minutes';
  v_page   bigint := current_setting('block_size')::bigint;
  v_pages  bigint := pg_relation_size('stock') / v_page;
  v_part   record;
  v_newest bigint; v_again bigint; v_some bigint[];
  v_made   bigint := 0; v_booked bigint := 0; -- beyond the first: charges and sales; their transfers
  v_payers bigint[] := '{}';
  v_wrong  bigint := 0;
BEGIN
  charges := 0; skus := 0; oversold := -1;
  FOR v_part IN
    SELECT t.*, c.oid::regclass AS part, pg_relation_size(c.oid) / v_page AS pages
      FROM (VALUES ('charges', 'subscription_id, period_no', 'charged_at', 'NULL::bigint', 'true'),
                   ('transfers', 'source, leg, kind', 'moved_at', 'user_id', 'kind IN (''charge'', ''payment'')'),
                   ('stock_movements', 'source, sku_id, kind', 'moved_at', 'NULL::bigint', 'kind = ''sale'''))
             AS t (name, key, written, payer, which)
      JOIN pg_inherits AS i ON i.inhparent = t.name::regclass
      JOIN pg_class AS c ON c.oid = i.inhrelid
     WHERE NOT EXISTS (SELECT FROM seals WHERE to_char(month, 'YYYY_MM') = right(c.relname, 7)) LOOP
    EXECUTE format(
      'WITH newest AS MATERIALIZED (SELECT %1$s, %2$s AS payer, %3$s AS written FROM %4$s WHERE %3$s > $1 AND %5$s'
      || ' AND ctid >= $2'
      || ')
       SELECT (SELECT count(*) FROM newest),
              (SELECT coalesce(sum(n - 1), 0)::bigint
                 FROM (SELECT count(*) AS n FROM %4$s WHERE (%1$s) IN (SELECT %1$s FROM newest) GROUP BY %1$s) AS found),
              ARRAY(SELECT payer FROM newest ORDER BY written DESC LIMIT 20)',
      v_part.key, v_part.payer, v_part.written, v_part.part, v_part.which)
      INTO v_newest, v_again, v_some
     USING v_since, format('(%s,0)', greatest(v_part.pages - p_pages, 0))::tid;
    CASE v_part.name
      WHEN 'charges' THEN
        charges := charges + v_newest;
        v_made := v_made + v_again;
      WHEN 'transfers' THEN
        v_booked := v_booked + v_again;
        v_payers := v_payers || v_some;
      ELSE
        v_made := v_made + v_again;
        v_pages := v_pages + v_part.pages;
    END CASE;
  END LOOP;
  charged_twice := greatest(v_made, v_booked);

  SELECT count(*), count(*) FILTER (WHERE u.balance_minor <> m.minor) INTO wallets, wrong_totals
    FROM users AS u
   CROSS JOIN LATERAL (
     SELECT coalesce(sum(CASE t.credit WHEN 'wallet' THEN t.amount_minor ELSE -t.amount_minor END), 0)
            + coalesce((SELECT net_minor FROM sealed_wallets WHERE user_id = u.user_id), 0) AS minor
       FROM (SELECT 'deposit' AS kind, u.user_id AS source
              UNION ALL SELECT 'charge', subscription_id FROM contracts WHERE user_id = u.user_id
              UNION ALL SELECT 'payment', order_id FROM orders WHERE user_id = u.user_id
              UNION ALL SELECT 'proration', proration_id FROM contracts AS c JOIN prorations USING (subscription_id) WHERE c.user_id = u.user_id
              UNION ALL SELECT CASE kind WHEN 'return' THEN 'refund' ELSE kind END, correction_id FROM corrections WHERE user_id = u.user_id
            ) AS s
      CROSS JOIN LATERAL (SELECT credit, amount_minor FROM open_transfers WHERE source = s.source AND kind = s.kind OFFSET 0) AS t) AS m
   WHERE u.user_id = ANY (v_payers)
     AND (SELECT count(*) FROM (SELECT FROM orders AS o WHERE o.user_id = u.user_id LIMIT 1001) AS few) <= 1000;

  IF v_pages <= 100 * p_pages THEN
    SELECT count(*), coalesce(sum(greatest(-there, -on_hand, 0)), 0)::bigint, count(*) FILTER (WHERE on_hand <> there)
      INTO skus, oversold, v_wrong
      FROM (SELECT on_hand, initial_qty + coalesce(qty, 0) AS there
              FROM stock
              LEFT JOIN (SELECT sku_id, sum(qty) AS qty
                           FROM (SELECT sku_id, qty FROM open_movements
                                  UNION ALL SELECT sku_id, received + returned + adjusted - sold FROM sealed_stock) AS moved
                          GROUP BY sku_id) AS m USING (sku_id)) AS counted;
    wrong_totals := wrong_totals + v_wrong;
  END IF;
  RETURN NEXT;
END $$;
COMMENT ON FUNCTION check_newest IS
  'What of the last five minutes was charged, paid or moved more than once, and which wallets and SKUs are not the sum of their rows, as far as that can be read cheaply; oversold is -1 where it cannot. charges, wallets, skus: how many were read. Errors: none of its own.';
REVOKE ALL ON FUNCTION check_newest FROM PUBLIC;
GRANT EXECUTE ON FUNCTION check_newest TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;

-- check_newest(now, pages): what would be seen first if a guard failed, for a page that is looked at all the time. The function trusts no
-- key and no CHECK. Of each month that is not closed it reads the last pages of charges, and of the rows written there in the
-- five minutes before `now` (null: the clock)
--   charged_twice  charges that have others of the same period: those beyond the first
--   wrong_totals   wallets of the last 20 charges of each month, and of the last orders, that are not the sum over ledger, and SKUs likewise
--   oversold       units that were sold and were never there, of all SKUs; -1: there are too many to be counted here
-- Charges of the same period are found by the key of their month, entries of a wallet by subscription, order and key. A user of more
-- than 1,000 orders, and all SKUs once stock and orders take more than 100 times those pages, are left to the audit.
CREATE OR REPLACE FUNCTION check_newest(p_now timestamptz, p_pages integer)
RETURNS TABLE (charges bigint, wallets bigint, skus bigint, charged_twice bigint, oversold bigint, wrong_totals bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
  v_since  timestamptz := coalesce(p_now, now()) - interval '5 minutes';
  v_page   bigint := current_setting('block_size')::bigint;
  v_sealed text[] := ARRAY(SELECT DISTINCT to_char(month, 'YYYY_MM') FROM seals);
  v_pages  bigint := (relation_bytes('stock') + relation_bytes('orders') + relation_bytes('order_lines')) / v_page;
  v_part   record;
  v_newest bigint; v_again bigint; v_some bigint[];
  v_payers bigint[];
  v_wrong  bigint := 0;
BEGIN
  charges := 0; skus := 0; oversold := -1; charged_twice := 0;
  SELECT coalesce(array_agg(o.user_id), '{}') INTO v_payers
    FROM (SELECT unnest(ids[1:20]) AS order_id FROM (SELECT ids, periods, at FROM batches ORDER BY batch_id DESC LIMIT p_pages) AS last
           WHERE periods IS NULL AND at > v_since LIMIT 20) AS decided
    JOIN orders AS o USING (order_id);
  FOR v_part IN
    SELECT c.oid::regclass AS part, relation_bytes(c.oid) / v_page AS pages
      FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
     WHERE i.inhparent = 'charges'::regclass AND right(c.relname, 7) <> ALL (v_sealed) LOOP
    EXECUTE format(
      'WITH newest AS MATERIALIZED (
         SELECT subscription_id, period_no, user_id, charged_at FROM %1$s WHERE charged_at > $1 AND ctid >= $2)
       SELECT (SELECT count(*) FROM newest),
              (SELECT coalesce(sum(n - 1), 0)::bigint
                 FROM (SELECT count(*) AS n FROM %1$s
                        WHERE (subscription_id, period_no) IN (SELECT subscription_id, period_no FROM newest)
                        GROUP BY subscription_id, period_no) AS found),
              ARRAY(SELECT user_id FROM newest ORDER BY charged_at DESC LIMIT 20)', v_part.part)
      INTO v_newest, v_again, v_some
     USING v_since, format('(%s,0)', greatest(v_part.pages - p_pages, 0))::tid;
    charges := charges + v_newest;
    charged_twice := charged_twice + v_again;
    v_payers := v_payers || v_some;
  END LOOP;

  SELECT count(*), count(*) FILTER (WHERE u.balance_minor <> m.minor) INTO wallets, wrong_totals
    FROM users AS u
   CROSS JOIN LATERAL (SELECT first_open() AS at OFFSET 0) AS f
   CROSS JOIN LATERAL (
     SELECT coalesce((SELECT net_minor FROM sealed_wallets WHERE user_id = u.user_id), 0)
            + coalesce((SELECT sum(amount_minor) FROM wallet_entries WHERE user_id = u.user_id AND at >= f.at AND of_kind IS DISTINCT FROM 'card'), 0)
            - coalesce((SELECT sum(total_minor) FROM orders WHERE user_id = u.user_id AND state = 'fulfilled' AND NOT by_card AND placed_at >= f.at), 0)
            - coalesce((SELECT sum(c.amount_minor) FROM contracts AS k
                         CROSS JOIN LATERAL (SELECT amount_minor, state FROM open_charges
                                              WHERE subscription_id = k.subscription_id OFFSET 0) AS c
                         WHERE k.user_id = u.user_id AND c.state = 'captured'), 0) AS minor) AS m
   WHERE u.user_id = ANY (v_payers)
     AND (SELECT count(*) FROM (SELECT FROM orders AS o WHERE o.user_id = u.user_id LIMIT 1001) AS few) <= 1000;

  IF v_pages <= 100 * p_pages THEN
    SELECT count(*), coalesce(sum(greatest(-there, -on_hand, 0)), 0)::bigint, count(*) FILTER (WHERE on_hand <> there)
      INTO skus, oversold, v_wrong
      FROM (SELECT on_hand, initial_qty + coalesce(qty, 0) AS there
              FROM stock
              LEFT JOIN (SELECT sku_id, sum(qty) AS qty
                           FROM (SELECT sku_id, qty FROM open_stock_ledger
                                  UNION ALL SELECT sku_id, received + returned + adjusted - sold FROM sealed_stock) AS moved
                          GROUP BY sku_id) AS m USING (sku_id)) AS counted;
    wrong_totals := wrong_totals + v_wrong;
  END IF;
  RETURN NEXT;
END $$;
COMMENT ON FUNCTION check_newest IS
  'What of the last five minutes was charged more than once, and which wallets and SKUs are not the sum of their entries, as far as that can be read cheaply; oversold is -1 where it cannot. charges, wallets, skus: how many were read. Errors: none of its own.';
REVOKE ALL ON FUNCTION check_newest FROM PUBLIC;
GRANT EXECUTE ON FUNCTION check_newest TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;

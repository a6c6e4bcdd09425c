-- After an error over a line: numbers the items, which are imported whole (a line of stock, a subscription, all lines of an
-- order), in the order in which they need each other, and puts a view before each staging table, so that the other
-- statements see the items from ledgerlock.first_item to ledgerlock.last_item alone. Locks: none that matter.
DO $$
DECLARE
  v_name  text;
  v_lines bigint;
  v_items bigint;
BEGIN
  FOREACH v_name IN ARRAY ARRAY['stock', 'subscriptions', 'orders', 'heads'] LOOP
    EXECUTE format('ALTER TABLE pg_temp.import_%1$s RENAME TO import_all_%1$s', v_name);
    EXECUTE format('ALTER TABLE pg_temp.import_all_%s ADD COLUMN item bigint'
                   ' DEFAULT nullif(current_setting(''ledgerlock.first_item'', true), '''')::bigint', v_name);
    EXECUTE format('CREATE VIEW pg_temp.import_%1$s AS SELECT * FROM pg_temp.import_all_%1$s'
                   ' WHERE item BETWEEN current_setting(''ledgerlock.first_item'')::bigint'
                   ' AND current_setting(''ledgerlock.last_item'')::bigint', v_name);
    EXECUTE format('CREATE INDEX ON pg_temp.import_all_%s (item)', v_name);
  END LOOP;

  UPDATE pg_temp.import_all_stock AS i SET item = n.item
    FROM (SELECT line, row_number() OVER (ORDER BY line) AS item FROM pg_temp.import_all_stock) AS n
   WHERE i.line = n.line;
  GET DIAGNOSTICS v_items = ROW_COUNT;
  UPDATE pg_temp.import_all_subscriptions AS i SET item = v_items + n.item
    FROM (SELECT line, row_number() OVER (ORDER BY line) AS item FROM pg_temp.import_all_subscriptions) AS n
   WHERE i.line = n.line;
  GET DIAGNOSTICS v_lines = ROW_COUNT;
  v_items := v_items + v_lines;
  UPDATE pg_temp.import_all_orders AS i SET item = v_items + n.item
    FROM (SELECT order_ref, customer_ref, row_number() OVER (ORDER BY min(line)) AS item
            FROM pg_temp.import_all_orders GROUP BY order_ref, customer_ref) AS n
   WHERE (i.order_ref, i.customer_ref) = (n.order_ref, n.customer_ref);
  ANALYZE pg_temp.import_all_stock, pg_temp.import_all_subscriptions, pg_temp.import_all_orders;
END $$

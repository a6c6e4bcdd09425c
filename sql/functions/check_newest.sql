-- check_newest(now, pages): a cheap look at what was done last, for a page that is looked at all the time. Of each month it
-- reads the last pages of charges, and of those made in the five minutes before `now` (null: the clock) it counts the
-- periods that were charged more than once (a period belongs to one month); and the SKUs with less than nothing on hand.
-- The keys and CHECKs of the tables forbid both. It does not replace the audit, which reads everything.
CREATE OR REPLACE FUNCTION check_newest(p_now timestamptz, p_pages integer)
RETURNS TABLE (charges bigint, charged_twice bigint, oversold bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_part regclass;
  v_one  bigint;
  v_two  bigint;
BEGIN
  charges := 0;
  charged_twice := 0;
  FOR v_part IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'charges'::regclass LOOP
    EXECUTE format(
      'SELECT count(*), count(*) FILTER (WHERE 1 < (SELECT count(*) FROM %1$s AS c
                WHERE c.subscription_id = n.subscription_id AND c.period_no = n.period_no))
         FROM %1$s AS n WHERE n.charged_at > $2'
      || ' AND n.ctid >= $1' -- place
      , v_part)
      INTO v_one, v_two
     USING format('(%s,0)', greatest(pg_relation_size(v_part) / current_setting('block_size')::bigint - p_pages, 0))::tid,
           coalesce(p_now, now()) - interval '5 minutes';
    charges := charges + v_one;
    charged_twice := charged_twice + v_two;
  END LOOP;
  SELECT count(*) FROM stock WHERE on_hand < 0 INTO oversold;
  RETURN NEXT;
END $$;
COMMENT ON FUNCTION check_newest IS
  'Of the charges of the last five minutes, as far as they lie in the last pages of each month: how many, and how many are of a period that was charged twice; and the SKUs below zero. Errors: none of its own.';
REVOKE ALL ON FUNCTION check_newest FROM PUBLIC;
GRANT EXECUTE ON FUNCTION check_newest TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;

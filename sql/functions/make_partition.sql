-- make_partition(table, month): for make_months. LIKE and ATTACH give the partition the constraints, indexes and row triggers
-- of its table; a trigger against TRUNCATE is never handed on. Keys are called as those of the table, with the month. Nobody
-- has a right on a partition: what default privileges of the owner give is taken away.
CREATE OR REPLACE FUNCTION make_partition(p_table text, p_month date)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  v_name text := p_table || to_char(p_month, '_YYYY_MM');
  v_keys text := (SELECT string_agg(format(', CONSTRAINT %I %s', conname || to_char(p_month, '_YYYY_MM'), pg_get_constraintdef(oid)), '')
                    FROM pg_constraint WHERE conrelid = p_table::regclass AND contype IN ('p', 'u'));
  v_role text;
BEGIN
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL EXCLUDING INDEXES%s)', v_name, p_table, v_keys);
  FOR v_role IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
                  FROM pg_class AS c, aclexplode(c.relacl) AS a
                 WHERE c.oid = v_name::regclass AND a.grantee <> c.relowner LOOP
    EXECUTE format('REVOKE ALL ON %I FROM %s', v_name, v_role);
  END LOOP;
  EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()',
                 p_table || '_are_never_emptied', v_name);
  EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', p_table, v_name,
                 p_month::timestamp AT TIME ZONE 'UTC', (p_month + interval '1 month') AT TIME ZONE 'UTC');
END $$;
COMMENT ON FUNCTION make_partition IS 'Makes the partition of one table for one month.';
REVOKE ALL ON FUNCTION make_partition FROM PUBLIC;

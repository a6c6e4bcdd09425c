-- decisions_from(at): the cursor of decisions_since behind which every decision stands that was recorded at `at` or later, and no
-- others that matter: some of a moment before may stand there, too. For a reader that begins today, and for one whose cursor is
-- ahead of a database that was set back. Reads all rows of batches. Locks: none.
CREATE OR REPLACE FUNCTION decisions_from(p_at timestamptz DEFAULT now())
RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  IF p_at IS NULL OR NOT isfinite(p_at) THEN
    RAISE EXCEPTION 'the time must be finite' USING ERRCODE = 'LL002';
  END IF;
  RETURN (SELECT least(min(feed_no), feed_end()) - 1
            FROM (SELECT feed_no FROM batches WHERE recorded_at >= p_at
                   UNION ALL
                  SELECT feed_no FROM events WHERE recorded_at >= p_at AND feed_no IS NOT NULL) AS later);
END $$;
COMMENT ON FUNCTION decisions_from IS
  'The cursor of decisions_since for what was decided at a time or later. Errors: LL002 bad argument.';
REVOKE ALL ON FUNCTION decisions_from FROM PUBLIC;
GRANT EXECUTE ON FUNCTION decisions_from TO ledgerlock_shop, ledgerlock_support;

-- feed_end(): the feed of decisions is complete below this number: every transaction with a lower one has ended, and what it
-- committed is visible. In a database that was restored into a server whose transaction ids are lower (next_feed_no) that is all
-- that the dump had, until the first transaction decides something there.
CREATE OR REPLACE FUNCTION feed_end()
RETURNS bigint LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
  RETURN (SELECT CASE WHEN newest >= base + greatest(pg_snapshot_xmax(seen)::text::bigint,
                                                     pg_current_xact_id_if_assigned()::text::bigint + 1)
                      THEN newest + 1 ELSE base + pg_snapshot_xmin(seen)::text::bigint END
            FROM feed_base, pg_current_snapshot() AS seen, feed_newest() AS newest
           WHERE one);
END $$;
COMMENT ON FUNCTION feed_end IS 'The number below which the feed of decisions is complete.';
REVOKE ALL ON FUNCTION feed_end FROM PUBLIC;

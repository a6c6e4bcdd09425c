-- next_feed_no(): the number of this transaction in the feed of decisions (decisions_since): the base of the feed and its transaction
-- id. A reader knows from its snapshot below which id all transactions have ended, so it never passes one that is open; a number
-- of a sequence would not tell.
-- The rows of a dump carry the ids of the server that they were made on. If these ids are above those of this server, the
-- base rises first, so numbers rise for ever. No row that is visible has an id from the end of the snapshot on but one of the
-- transaction itself. All is read in one statement, of one snapshot, and the base is only changed as it was read: else a
-- second rise would pass the numbers of transactions that are open.
-- In a Citus cluster these are transactions of the node that has the tables (check_home).
CREATE OR REPLACE FUNCTION next_feed_no()
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_xid    bigint := pg_current_xact_id()::text::bigint;
  v_base   bigint;
  v_newest bigint;
  v_end    bigint;
BEGIN
  PERFORM check_home();
  SELECT base, feed_newest(), base + greatest(pg_snapshot_xmax(pg_current_snapshot())::text::bigint, v_xid + 1)
    INTO STRICT v_base, v_newest, v_end FROM feed_base WHERE one;
  IF v_newest >= v_end THEN
    UPDATE feed_base SET base = v_newest WHERE one AND base = v_base;
    SELECT base INTO STRICT v_base FROM feed_base WHERE one;
  END IF;
  RETURN v_base + v_xid;
END $$;
COMMENT ON FUNCTION next_feed_no IS 'The number of this transaction in the feed of decisions.';
REVOKE ALL ON FUNCTION next_feed_no FROM PUBLIC;

-- feed_newest(): the highest number of the feed of decisions that is stored and can be seen; 0: there is none.
CREATE OR REPLACE FUNCTION feed_newest()
RETURNS bigint LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN -- PL/pgSQL keeps the plan
  RETURN greatest((SELECT max(feed_no) FROM batches), (SELECT max(feed_no) FROM events), 0);
END $$;
COMMENT ON FUNCTION feed_newest IS 'The highest number of the feed of decisions.';
REVOKE ALL ON FUNCTION feed_newest FROM PUBLIC;

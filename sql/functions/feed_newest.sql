-- feed_newest(): the highest number of the feed of decisions that is stored and can be seen; 0: there is none.
CREATE OR REPLACE FUNCTION feed_newest()
RETURNS bigint LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
  SELECT greatest((SELECT max(feed_no) FROM batches), (SELECT max(feed_no) FROM order_journal), 0)
$$;
COMMENT ON FUNCTION feed_newest IS 'The highest number of the feed of decisions.';
REVOKE ALL ON FUNCTION feed_newest FROM PUBLIC;

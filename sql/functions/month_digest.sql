-- month_digest(month): one text for all that month_sums tells: another one after any change of any row of the month.
CREATE OR REPLACE FUNCTION month_digest(p_month date)
RETURNS text LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
  RETURN (SELECT md5(coalesce(string_agg(s::text, chr(10) ORDER BY s::text COLLATE "C"), '')) FROM month_sums(p_month) AS s);
END $$;
COMMENT ON FUNCTION month_digest IS 'What month_sums tells of a month, as one text.';
REVOKE ALL ON FUNCTION month_digest FROM PUBLIC;

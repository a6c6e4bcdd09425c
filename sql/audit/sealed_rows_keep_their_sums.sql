-- With --sealed: the rows of every closed month add up to its seals, and their checksums agree.
-- Without it no row of a closed month is read, and this holds.
WITH closed AS (
  SELECT DISTINCT month FROM seals WHERE current_setting('ledgerlock.sealed', true) = 'on'
), now_there AS (
  SELECT c.month, s.* FROM closed AS c CROSS JOIN LATERAL month_sums(c.month) AS s
), seal AS (
  SELECT month, table_name, kind, currency, row_ct, total, checksum
    FROM seals JOIN closed USING (month) WHERE table_name <> 'months'
)
SELECT format('%s %s %s', to_char(month, 'YYYY-MM'), table_name, kind) AS what,
       format('%s rows, sum %s; sealed %s rows, sum %s', coalesce(n.row_ct, 0), coalesce(n.total, 0), coalesce(s.row_ct, 0),
              coalesce(s.total, 0)) || CASE WHEN n.checksum <> s.checksum THEN '; a row was changed' ELSE '' END AS detail
  FROM now_there AS n FULL JOIN seal AS s USING (month, table_name, kind, currency)
 WHERE (n.row_ct, n.total, n.checksum) IS DISTINCT FROM (s.row_ct, s.total, s.checksum)
 ORDER BY what;

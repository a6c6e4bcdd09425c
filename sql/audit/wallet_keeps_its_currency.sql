-- Every transfer is in the currency of its wallet.
-- If a transfer and its wallet differ, at least one of the two is not in the most common currency: only such rows are
-- compared. The choice of that currency matters to the speed alone.
WITH common AS (
  SELECT mode() WITHIN GROUP (ORDER BY currency) AS currency
    FROM (SELECT currency FROM users LIMIT 1000) AS sample
), strange AS MATERIALIZED (
  SELECT t.kind, t.source, t.leg, t.user_id, t.currency, u.currency AS wallet
    FROM open_transfers AS t
    JOIN users AS u USING (user_id)
   WHERE u.currency <> (SELECT currency FROM common) AND t.currency <> u.currency
   UNION ALL
  SELECT t.kind, t.source, t.leg, t.user_id, t.currency, u.currency
    FROM open_transfers AS t
    JOIN users AS u USING (user_id)
   WHERE t.currency <> (SELECT currency FROM common) AND u.currency = (SELECT currency FROM common))
SELECT format('%s %s/%s', kind, source, leg) AS what,
       format('of user %s in %s, wallet in %s', user_id, currency, wallet) AS detail
  FROM strange
 ORDER BY kind, source, leg;

-- Every transfer is in the currency of its wallet.
-- Where two differ, one of them is not the commonest currency: only those are looked at, most often none.
WITH common AS (
  SELECT currency FROM ledgerlock.users GROUP BY currency ORDER BY count(*) DESC LIMIT 1
), strange AS MATERIALIZED (
  SELECT t.kind, t.source, t.leg, t.user_id, t.currency, u.currency AS wallet
    FROM ledgerlock.transfers AS t
    JOIN ledgerlock.users AS u USING (user_id)
   WHERE u.currency <> (SELECT currency FROM common) AND t.currency <> u.currency
   UNION ALL
  SELECT t.kind, t.source, t.leg, t.user_id, t.currency, u.currency
    FROM ledgerlock.transfers AS t
    JOIN ledgerlock.users AS u USING (user_id)
   WHERE t.currency <> (SELECT currency FROM common) AND u.currency = (SELECT currency FROM common))
SELECT format('%s %s/%s', kind, source, leg) AS what,
       format('of user %s in %s, wallet in %s', user_id, currency, wallet) AS detail
  FROM strange
 ORDER BY kind, source, leg;

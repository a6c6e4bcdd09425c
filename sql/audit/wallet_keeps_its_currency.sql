-- Every transfer is in the currency of its wallet.
-- Of two that differ one at least is not a given currency: with a common one, few rows are looked at. Any would do.
WITH common AS (
  SELECT mode() WITHIN GROUP (ORDER BY currency) AS currency
    FROM (SELECT currency FROM ledgerlock.users LIMIT 1000) AS sample
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

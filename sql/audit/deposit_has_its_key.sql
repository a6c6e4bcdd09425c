-- Every deposit of a client has its key, and every key its deposit, of the same user, amount and time.
-- Deposit 0 is the opening deposit of seed and import, which has no key. Without its key the same deposit could be made again.
SELECT format('deposit %s/%s', coalesce(k.user_id, t.source), coalesce(k.deposit_id, t.leg)) AS what,
       format('%s in the wallet, %s by its key', coalesce(t.amount_minor::text, 'nothing'), coalesce(k.amount_minor::text, 'nothing')) AS detail
  FROM (SELECT user_id, deposit_id, sum(amount_minor) AS amount_minor, min(at) AS at FROM deposits
         WHERE at >= (SELECT first_open()) GROUP BY 1, 2) AS k
  FULL JOIN (SELECT source, leg, amount_minor, source_at FROM open_transfers WHERE kind = 'deposit' AND leg <> 0) AS t
    ON t.source = k.user_id AND t.leg = k.deposit_id
 WHERE (t.amount_minor, t.source_at) IS DISTINCT FROM (k.amount_minor, k.at)
 ORDER BY 1;

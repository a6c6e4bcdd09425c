-- Every captured charge has a transfer of its amount from the wallet of its user.
WITH unpaid AS MATERIALIZED (
  SELECT c.subscription_id, c.period_no, c.user_id, c.amount_minor,
         t.source, t.user_id AS paid_by, t.amount_minor AS paid_minor
    FROM ledgerlock.charges AS c
    LEFT JOIN ledgerlock.transfers AS t
      ON t.kind = 'charge' AND t.source = c.subscription_id AND t.leg = c.period_no
   WHERE c.state = 'captured'
     AND (t.source IS NULL OR t.user_id <> c.user_id OR t.amount_minor <> c.amount_minor))
SELECT format('subscription %s period %s', subscription_id, period_no) AS what,
       CASE WHEN source IS NULL THEN 'no transfer'
            ELSE format('charge of user %s amount %s, transfer of user %s amount %s',
                        user_id, amount_minor, paid_by, paid_minor) END AS detail
  FROM unpaid
 ORDER BY subscription_id, period_no;

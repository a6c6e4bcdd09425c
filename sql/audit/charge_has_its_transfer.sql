-- Every captured charge has a transfer of its amount from the wallet of its user.
SELECT format('subscription %s period %s', c.subscription_id, c.period_no) AS what,
       CASE WHEN t.source IS NULL THEN 'no transfer'
            ELSE format('charge of user %s amount %s, transfer of user %s amount %s',
                        c.user_id, c.amount_minor, t.user_id, t.amount_minor) END AS detail
  FROM ledgerlock.charges AS c
  LEFT JOIN ledgerlock.transfers AS t
    ON t.kind = 'charge' AND t.source = c.subscription_id AND t.leg = c.period_no
 WHERE c.state = 'captured'
   AND (t.source IS NULL OR t.user_id <> c.user_id OR t.amount_minor <> c.amount_minor)
 ORDER BY c.subscription_id, c.period_no;

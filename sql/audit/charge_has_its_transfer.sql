-- Every captured charge has a transfer of its amount, time and period from the wallet of its user, unless it was free.
WITH unpaid AS MATERIALIZED (
  SELECT c.subscription_id, c.period_no, c.user_id, c.amount_minor,
         c.charged_at, t.source, t.user_id AS paid_by, t.amount_minor AS paid_minor, t.moved_at
    FROM open_charges AS c
    LEFT JOIN open_transfers AS t
      ON t.kind = 'charge' AND t.source = c.subscription_id AND t.leg = c.period_no AND t.source_at = c.period_start
   WHERE c.state = 'captured'
     AND ((t.source IS NULL AND c.amount_minor <> 0) OR t.user_id <> c.user_id OR t.amount_minor <> c.amount_minor
          OR t.moved_at <> c.charged_at))
SELECT format('subscription %s period %s', subscription_id, period_no) AS what,
       CASE WHEN source IS NULL THEN 'no transfer'
            ELSE format('charge of user %s amount %s at %s, transfer of user %s amount %s at %s',
                        user_id, amount_minor, charged_at, paid_by, paid_minor, moved_at) END AS detail
  FROM unpaid
 ORDER BY subscription_id, period_no;

-- Every charge that is written off has its row of write_offs, and every such row its charge, of the same user, amount and time.
-- A write-off may be of a period that began in a month which is closed by now.
SELECT format('subscription %s period %s', subscription_id, period_no) AS what,
       format('%s of %s; written off: %s', coalesce(c.state, 'no charge'), c.amount_minor, coalesce(w.amount_minor::text, 'nothing')) AS detail
  FROM (SELECT w.*, s.currency AS of_currency
          FROM write_offs AS w JOIN subscriptions AS s USING (subscription_id)
         WHERE period_start(s.anchor_at, s.unit, s.every, w.period_no) >= (SELECT first_open())) AS w
  FULL JOIN (SELECT * FROM open_charges WHERE state = 'written_off') AS c USING (subscription_id, period_no)
 WHERE (c.user_id, c.amount_minor, c.charged_at, c.worker, w.currency::text) IS DISTINCT FROM
       (w.user_id, w.amount_minor, w.at, w.worker, w.of_currency::text)
 ORDER BY 1;

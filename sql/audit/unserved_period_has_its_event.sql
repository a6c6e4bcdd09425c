-- Every charge that is waived, skipped or written off is named by an event, and every period of such an event is one.
WITH named AS (
  SELECT subscription_id, no AS period_no, event, j.user_id, worker, at, j.amount_minor
    FROM events AS j
    LEFT JOIN subscriptions AS s USING (subscription_id)
   CROSS JOIN LATERAL generate_series(from_period, j.next_period_no - 1) AS no
   WHERE event IN ('waived', 'skipped', 'written_off')
     AND coalesce(period_start(s.anchor_at, s.unit, s.every, no) >= (SELECT first_open()), true)
)
SELECT format('subscription %s period %s', subscription_id, period_no) AS what,
       format('%s by %s, fence %s; event: %s by %s', coalesce(c.state, 'no charge'), c.worker, c.fence,
              coalesce(e.event, 'none'), e.worker) AS detail
  FROM (SELECT * FROM open_charges WHERE state IN ('waived', 'skipped', 'written_off')) AS c
  FULL JOIN named AS e USING (subscription_id, period_no)
 WHERE (c.state, c.user_id, c.worker, c.charged_at) IS DISTINCT FROM (e.event, e.user_id, e.worker, e.at)
    OR (c.tries = 0 AND c.fence <> 0) OR (c.state = 'written_off' AND c.amount_minor IS DISTINCT FROM e.amount_minor)
 ORDER BY subscription_id, period_no;

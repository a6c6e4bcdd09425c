-- A charge that was ever declined has an event of each try, and is what the last one says.
-- A charge that was waived or written off after its last try was declined by that.
-- No try of an open month is older than it. A younger one may be of a period that began before, in a closed month.
WITH try AS (
  SELECT subscription_id, j.next_period_no - (event = 'captured')::int AS period_no, event_id, try_no, event, j.user_id,
         j.amount_minor, token, worker, at
    FROM events AS j LEFT JOIN subscriptions AS s USING (subscription_id)
   WHERE event IN ('declined', 'captured') AND at >= (SELECT first_open())
     AND coalesce(period_start(s.anchor_at, s.unit, s.every, j.next_period_no - (event = 'captured')::int)
                  >= (SELECT first_open()), true)
), last AS (
  SELECT DISTINCT ON (subscription_id, period_no) *, count(*) OVER (PARTITION BY subscription_id, period_no) AS tries
    FROM try ORDER BY subscription_id, period_no, event_id DESC
)
SELECT format('subscription %s period %s', subscription_id, period_no) AS what,
       format('%s, tries %s; events: %s, tries %s', coalesce(c.state, 'no charge'), coalesce(c.tries, 0),
              coalesce(l.event, 'none'), coalesce(l.tries, 0)) AS detail
  FROM (SELECT * FROM open_charges WHERE tries > 0 AND (state NOT IN ('captured', 'paid') OR tries > 1)) AS c
  FULL JOIN last AS l USING (subscription_id, period_no)
 WHERE (CASE WHEN c.state IN ('waived', 'written_off') THEN 'declined' WHEN c.state = 'paid' THEN 'captured' ELSE c.state END, c.tries, c.tries::int8, c.user_id, c.amount_minor, c.fence)
       IS DISTINCT FROM (l.event, l.try_no, l.tries, l.user_id, l.amount_minor, l.token)
    OR (c.state NOT IN ('waived', 'written_off') AND (c.worker, c.charged_at) IS DISTINCT FROM (l.worker, l.at))
 ORDER BY subscription_id, period_no;

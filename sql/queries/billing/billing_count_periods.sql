-- About how many periods are to be charged: of each due subscription the one that is due, and those that have begun
-- since, by the mean length of a month and of a year. $1 timestamptz: now (null: the database's clock).
-- Column: n bigint. Locks: none.
SELECT coalesce(sum(CASE WHEN state = 'past_due' THEN 1
                         ELSE 1 + floor(extract(epoch FROM greatest(least(clock.now, cancel_at - interval '1 microsecond')
                                                                - next_due_at, interval '0'))
                                        / (every::bigint * CASE unit WHEN 'day' THEN 86400 WHEN 'week' THEN 604800
                                                             WHEN 'month' THEN 2629746 ELSE 31556952 END)) END), 0)::bigint
  FROM (SELECT coalesce($1::timestamptz, now()) AS now) AS clock, subscriptions
 WHERE state IN ('active', 'past_due') AND next_due_at <= clock.now

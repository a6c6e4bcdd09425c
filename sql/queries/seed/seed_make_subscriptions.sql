-- Makes subscriptions up: of a hundred 80 by the month, on days 1 to 31 alike, 15 by the week and 5 by the year; 3 begin later than
-- now, 4 end. begun: how many of its periods start at or before now. $1 and $2 bigint: the rows above $1, up to $2. Locks: none.
-- OFFSET 0: each step is computed once a row.
INSERT INTO pg_temp.seed_subscriptions (subscription_id, user_id, plan, amount_minor, unit, anchor_at, cancel_at, begun)
SELECT n, 1 + pg_temp.draw(w.seed, n, 1, w.users), offer.plan, offer.amount_minor, drawn.unit, anchor.at,
       period_start(anchor.at, drawn.unit, 1, ending.no), least(begun.ct, ending.no)
  FROM pg_temp.seed_of AS w, generate_series($1::bigint + 1, $2) AS n,
       LATERAL (SELECT (ARRAY['month', 'week', 'year'])[width_bucket(pg_temp.draw(w.seed, n, 2, 100), ARRAY[0, 80, 95]::bigint[])] AS unit,
                       pg_temp.draw(w.seed, n, 3, 100) < 3 AS is_later, pg_temp.draw(w.seed, n, 4, 86400) AS second,
                       pg_temp.draw(w.seed, n, 5, 31) AS day, pg_temp.draw(w.seed, n, 6, 4) AS back OFFSET 0) AS drawn,
       -- a subscription by the month begins in this month or, where it has no such day, in the next one on the way
       LATERAL (SELECT date_trunc('month', w.at) + CASE WHEN drawn.is_later THEN 1
                         WHEN drawn.back = 0 AND date_trunc('month', w.at) + drawn.day * interval '1 day' + drawn.second * interval '1 second' > w.at THEN -1
                         ELSE -drawn.back END * interval '1 month' AS at OFFSET 0) AS month,
       LATERAL (SELECT CASE drawn.unit
                         WHEN 'week' THEN w.at + (1 + drawn.second) * CASE WHEN drawn.is_later THEN 28 ELSE -112 END * interval '1 second'
                         WHEN 'year' THEN w.at + (1 + drawn.second) * CASE WHEN drawn.is_later THEN 28 ELSE -730 END * interval '1 second'
                         ELSE month.at + CASE WHEN date_trunc('month', month.at + drawn.day * interval '1 day') = month.at THEN interval '0'
                                              WHEN drawn.is_later THEN interval '1 month' ELSE interval '-1 month' END
                              + drawn.day * interval '1 day' + drawn.second * interval '1 second' END AS at OFFSET 0) AS near,
       -- no two contracts of a user are alike: the microseconds are the number of the row
       LATERAL (SELECT date_trunc('second', near.at) + n % 1000000 * interval '1 microsecond'
                       - CASE WHEN near.at <= w.at THEN interval '1 second' ELSE interval '0' END AS at OFFSET 0) AS anchor,
       LATERAL (SELECT period_at(anchor.at, drawn.unit, 1, w.at) + 1 AS ct OFFSET 0) AS begun,
       LATERAL (SELECT CASE WHEN pg_temp.draw(w.seed, n, 7, 100) < 4 THEN 1 + pg_temp.draw(w.seed, n, 8, begun.ct + 2) END AS no OFFSET 0) AS ending,
       LATERAL (SELECT CASE drawn.unit WHEN 'month' THEN (ARRAY['basic', 'standard', 'premium', 'family', 'business'])[choice.month]
                                       WHEN 'week' THEN (ARRAY['paper', 'fruit box'])[choice.other]
                                       ELSE (ARRAY['domain', 'membership'])[choice.other] END AS plan,
                       CASE drawn.unit WHEN 'month' THEN (ARRAY[499, 999, 1999, 2999, 4900])[choice.month]
                                       WHEN 'week' THEN (ARRAY[390, 1250])[choice.other]
                                       ELSE (ARRAY[1490, 9900])[choice.other] END AS amount_minor
                  FROM (SELECT 1 + pg_temp.draw(w.seed, n, 9, 5) AS month, 1 + pg_temp.draw(w.seed, n, 9, 2) AS other) AS choice) AS offer

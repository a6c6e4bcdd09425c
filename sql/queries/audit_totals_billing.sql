-- audit_totals_billing: what should have been charged, counted from the anchors, and what was.
-- $1 text: now. Columns per currency: charged_minor, declined_minor (as text, since 64 bits may not hold them),
-- periods_due, charged, declined, still_to_do.
-- Due are periods that start at or before now and before cancel_at. Period k of months starts in the anchor's
-- month plus k steps: counting whole steps between the two months and checking the last start is exact.
-- Amounts that 32 bits hold are summed apart: those sums are whole numbers, others numeric and slower.
-- OFFSET 0: or the planner copies the expressions within into every use. In the order of subscription_id, which
-- the keys of both tables give, so that nothing is sorted or hashed. Locks: none.
WITH until AS (
  SELECT subscription_id, currency, amount_minor, state, anchor_at, unit, every,
         least((SELECT $1::text::timestamptz), cancel_at - interval '1 microsecond') AS at
    FROM ledgerlock.subscriptions ORDER BY subscription_id OFFSET 0
), estimate AS (
  SELECT *, CASE
       WHEN unit IN ('day', 'week') THEN
         floor(date_part('epoch', at - anchor_at)
               / (every * CASE unit WHEN 'day' THEN 86400 ELSE 604800 END))
       ELSE floor(((date_part('year', at) - date_part('year', anchor_at)) * 12
                   + date_part('month', at) - date_part('month', anchor_at))
                  / (every * CASE unit WHEN 'month' THEN 1 ELSE 12 END)) END::int8 AS last_no
    FROM until ORDER BY subscription_id OFFSET 0
), due AS (
  SELECT subscription_id, currency, amount_minor, state,
         CASE WHEN at < anchor_at THEN 0
              WHEN ledgerlock.period_start(anchor_at, unit, every, last_no) <= at THEN last_no + 1
              ELSE last_no END AS periods
    FROM estimate ORDER BY subscription_id OFFSET 0
), captured AS (
  SELECT subscription_id, least(count(*), max(period_no) + 1) AS periods, -- without those charged twice
         count(*) AS charges,
         sum(amount_minor::int4) FILTER (WHERE amount_minor BETWEEN -2147483648 AND 2147483647) AS minor,
         sum(amount_minor) FILTER (WHERE amount_minor NOT BETWEEN -2147483648 AND 2147483647) AS huge_minor
    FROM ledgerlock.charges WHERE state = 'captured'
   GROUP BY subscription_id
), total AS (
  SELECT currency, amount_minor, due.periods, captured.charges, captured.minor, captured.huge_minor,
         greatest(due.periods - coalesce(captured.periods, 0), 0) AS open,
         state IN ('past_due', 'unpaid') AS is_behind
    FROM due LEFT JOIN captured USING (subscription_id) OFFSET 0
)
SELECT currency,
       (coalesce(sum(minor), 0) + coalesce(sum(huge_minor), 0))::text AS charged_minor,
       coalesce(sum(open::numeric * amount_minor) FILTER (WHERE is_behind), 0)::text AS declined_minor,
       sum(periods)::int8 AS periods_due,
       coalesce(sum(charges), 0)::int8 AS charged,
       coalesce(sum(open) FILTER (WHERE is_behind), 0)::int8 AS declined,
       coalesce(sum(open) FILTER (WHERE NOT is_behind), 0)::int8 AS still_to_do
  FROM total GROUP BY currency ORDER BY currency;

-- audit_totals_billing: the amounts due, counted from the anchors, beside the amounts charged.
-- Declined are the open periods of a subscription whose first one was tried in vain, also if it was parked since.
-- Of closed months, seals has the charges; no period that was due in one is open.
-- $1 text: now. Columns: currency, charged, declined (minor units as text, since 64 bits may not hold them), then how
-- many periods: periods_due, charged, waived, skipped, written_off, declined, still_to_do. The last row, with currency null, is that of all.
-- Due are periods that start at or before now and before cancel_at. A pause has skipped periods that are not due yet. Period
-- k of months starts in the anchor's month plus k steps: counting whole steps between the two months and checking the last start is exact.
-- Amounts that fit into 32 bits are summed apart, as bigint; the sum of a bigint is numeric and slower.
-- OFFSET 0: without it the planner copies the inner expressions into every use. Both tables are read in the order of
-- subscription_id by their keys, so nothing is sorted or hashed. Locks: none.
WITH until AS (
  SELECT subscription_id, currency, amount_minor, trial_periods, terms_from_no, next_period_no, anchor_at, unit, every,
         state IN ('past_due', 'unpaid', 'parked') AND retries > 0 AS is_behind,
         least((SELECT $1::text::timestamptz), cancel_at - interval '1 microsecond') AS at
    FROM subscriptions ORDER BY subscription_id OFFSET 0
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
  SELECT subscription_id, currency, amount_minor, trial_periods, terms_from_no, next_period_no, is_behind,
         CASE WHEN at < anchor_at THEN 0
              WHEN period_start(anchor_at, unit, every, last_no) <= at THEN last_no + 1
              ELSE last_no END AS periods
    FROM estimate ORDER BY subscription_id OFFSET 0
), settled AS (
  SELECT subscription_id, count(*) AS n, min(period_no) AS first_no, max(period_no) AS last_no,
         count(*) FILTER (WHERE state = 'captured') AS charges,
         count(*) FILTER (WHERE state = 'waived') AS waived, count(*) FILTER (WHERE state = 'skipped') AS skipped,
         count(*) FILTER (WHERE state = 'written_off') AS written_off,
         sum(amount_minor::int4) FILTER (WHERE state = 'captured' AND amount_minor BETWEEN -2147483648 AND 2147483647) AS minor,
         sum(amount_minor) FILTER (WHERE state = 'captured' AND amount_minor NOT BETWEEN -2147483648 AND 2147483647) AS huge_minor
    FROM open_charges WHERE state <> 'declined'
   GROUP BY subscription_id
), sealed AS (
  SELECT table_name, kind, currency, sum(row_ct)::int8 AS n, sum(total) AS minor
    FROM seals WHERE table_name = 'charges' OR (table_name = 'ledger' AND kind LIKE 'charge %')
   GROUP BY table_name, kind, currency
), begun AS ( -- periods before the first one of an open month belong to closed months
  SELECT due.*, settled.*,
         CASE WHEN EXISTS (SELECT FROM sealed) THEN coalesce(first_no, next_period_no) ELSE 0 END AS before
    FROM due LEFT JOIN (SELECT subscription_id AS of_id, n, first_no, last_no, charges, waived, skipped, written_off, minor, huge_minor
                          FROM settled OFFSET 0) AS settled ON of_id = subscription_id OFFSET 0
), counted AS ( -- without those charged twice
  SELECT *, before + coalesce(least(n, last_no - before + 1), 0) AS done FROM begun OFFSET 0
), total AS (
  SELECT subscription_id, currency, amount_minor, trial_periods, terms_from_no, next_period_no, periods, charges, minor, huge_minor, waived, written_off,
         greatest(skipped - greatest(done - periods, 0), 0) AS skipped,
         greatest(periods - done, 0) AS open, is_behind
    FROM counted OFFSET 0
), by_currency AS (
  SELECT currency,
         coalesce(sum(minor), 0) + coalesce(sum(huge_minor), 0) AS charged_minor,
         coalesce(sum(CASE WHEN terms_from_no IS NULL AND next_period_no >= trial_periods THEN open::numeric * amount_minor
                           ELSE cost_of_periods(subscription_id, next_period_no, next_period_no + open - 1,
                                                trial_periods, terms_from_no, amount_minor) END) FILTER (WHERE is_behind), 0) AS declined_minor,
         sum(periods) AS periods_due,
         coalesce(sum(charges), 0) AS charged, coalesce(sum(waived), 0) AS waived, coalesce(sum(skipped), 0) AS skipped,
         coalesce(sum(written_off), 0) AS written_off,
         coalesce(sum(open) FILTER (WHERE is_behind), 0) AS declined,
         coalesce(sum(open) FILTER (WHERE NOT is_behind), 0) AS still_to_do
    FROM total GROUP BY currency
)
SELECT currency, (charged_minor + coalesce((SELECT minor FROM sealed AS s WHERE s.currency = b.currency), 0))::text AS charged, declined_minor::text AS declined, 0::int8 AS periods_due,
       0::int8 AS charged, 0::int8 AS waived, 0::int8 AS skipped, 0::int8 AS written_off, 0::int8 AS declined, 0::int8 AS still_to_do
  FROM by_currency AS b
UNION ALL
SELECT NULL, '0', '0', coalesce(sum(periods_due), 0)::int8, (coalesce(sum(charged), 0) + coalesce((SELECT n FROM sealed WHERE kind = 'captured'), 0))::int8,
       (coalesce(sum(waived), 0) + coalesce((SELECT n FROM sealed WHERE kind = 'waived'), 0))::int8, (coalesce(sum(skipped), 0) + coalesce((SELECT n FROM sealed WHERE kind = 'skipped'), 0))::int8,
       (coalesce(sum(written_off), 0) + coalesce((SELECT n FROM sealed WHERE kind = 'written_off'), 0))::int8,
       coalesce(sum(declined), 0)::int8, coalesce(sum(still_to_do), 0)::int8
  FROM by_currency;

-- audit_totals_billing: the amounts due, counted from the anchors, beside the amounts charged.
-- Declined are the open periods of a subscription whose first one was tried in vain, also if it was parked since.
-- Of closed months, seals has the charges; no period that was due in one is open.
-- $1 text: now. Columns: currency, charged, declined (minor units as text, since 64 bits may not hold them), then how
-- many periods: periods_due, charged, waived, skipped, written_off, declined, still_to_do. The last row, with currency null, is that of all.
-- Due are periods that start at or before now and before cancel_at. A pause has skipped periods that are not due yet. Period
-- k of months starts in the anchor's month plus k steps: counting whole steps between the two months and checking the last start is exact.
-- Open are the due periods from next_period_no on: the invariants prove that all before it are settled, so charges and subscriptions
-- are each read once, and joined for the few periods that were skipped. While all wallets have one currency, charges need no join for that.
-- Amounts that fit into 32 bits are summed apart, as bigint; the sum of a bigint is numeric and slower.
-- OFFSET 0: without it the planner copies the inner expressions into every use. Locks: none.
WITH sole AS (
  SELECT CASE WHEN min(currency) = max(currency) THEN min(currency) END AS currency FROM users
), until AS NOT MATERIALIZED (
  SELECT subscription_id, currency, amount_minor, trial_periods, terms_from_no, next_period_no, anchor_at, unit, every,
         state IN ('past_due', 'unpaid', 'parked') AND retries > 0 AS is_behind,
         least((SELECT $1::text::timestamptz), cancel_at - interval '1 microsecond') AS at
    FROM subscriptions
), estimate AS (
  SELECT *, CASE
       WHEN unit IN ('day', 'week') THEN
         floor(date_part('epoch', at - anchor_at)
               / (every * CASE unit WHEN 'day' THEN 86400 ELSE 604800 END))
       ELSE floor(((date_part('year', at) - date_part('year', anchor_at)) * 12
                   + date_part('month', at) - date_part('month', anchor_at))
                  / (every * CASE unit WHEN 'month' THEN 1 ELSE 12 END)) END::int8 AS last_no
    FROM until OFFSET 0
), due AS (
  SELECT subscription_id, currency, amount_minor, trial_periods, terms_from_no, next_period_no, is_behind,
         CASE WHEN at < anchor_at THEN 0
              WHEN period_start(anchor_at, unit, every, last_no) <= at THEN last_no + 1
              ELSE last_no END AS periods
    FROM estimate OFFSET 0
), open AS (
  SELECT currency, sum(periods) AS periods_due,
         coalesce(sum(CASE WHEN terms_from_no IS NULL AND next_period_no >= trial_periods THEN (periods - next_period_no)::numeric * amount_minor
                           ELSE cost_of_periods(subscription_id, next_period_no, periods - 1, trial_periods, terms_from_no, amount_minor) END)
                    FILTER (WHERE is_behind AND periods > next_period_no), 0) AS declined_minor,
         coalesce(sum(periods - next_period_no) FILTER (WHERE is_behind AND periods > next_period_no), 0) AS declined,
         coalesce(sum(periods - next_period_no) FILTER (WHERE NOT is_behind AND periods > next_period_no), 0) AS still_to_do
    FROM due GROUP BY currency
), charge AS (
  SELECT (SELECT currency FROM sole) AS currency, state, count(*) AS n,
         sum(amount_minor::int4) FILTER (WHERE amount_minor BETWEEN -2147483648 AND 2147483647) AS minor,
         sum(amount_minor) FILTER (WHERE amount_minor NOT BETWEEN -2147483648 AND 2147483647) AS huge_minor
    FROM open_charges WHERE (SELECT currency FROM sole) IS NOT NULL AND state NOT IN ('declined', 'skipped') GROUP BY state
  UNION ALL
  SELECT s.currency, c.state, count(*),
         sum(c.amount_minor::int4) FILTER (WHERE c.amount_minor BETWEEN -2147483648 AND 2147483647),
         sum(c.amount_minor) FILTER (WHERE c.amount_minor NOT BETWEEN -2147483648 AND 2147483647)
    FROM open_charges AS c JOIN subscriptions AS s USING (subscription_id)
   WHERE (SELECT currency FROM sole) IS NULL AND c.state NOT IN ('declined', 'skipped') GROUP BY s.currency, c.state
  UNION ALL
  SELECT u.currency, 'skipped', count(*), 0, 0
    FROM open_charges AS c JOIN until AS u USING (subscription_id)
   WHERE c.state = 'skipped' AND c.period_start <= u.at GROUP BY u.currency
), sealed AS (
  SELECT table_name, kind, currency, sum(row_ct)::int8 AS n, sum(total) AS minor
    FROM seals WHERE table_name = 'charges' OR (table_name = 'ledger' AND (kind LIKE 'charge %' OR kind LIKE 'card %'))
   GROUP BY table_name, kind, currency
), counted AS (
  SELECT state, sum(n) AS n FROM (SELECT state, n FROM charge UNION ALL SELECT kind, n FROM sealed WHERE table_name = 'charges') AS all_months
   GROUP BY state
)
SELECT currency,
       (coalesce((SELECT coalesce(sum(minor), 0) + coalesce(sum(huge_minor), 0) FROM charge AS c
                   WHERE c.currency = o.currency AND c.state IN ('captured', 'paid')), 0)
        + coalesce((SELECT sum(minor) FROM sealed AS s WHERE s.table_name = 'ledger' AND s.currency = o.currency), 0))::text AS charged,
       declined_minor::text AS declined, 0::int8 AS periods_due,
       0::int8 AS charged, 0::int8 AS waived, 0::int8 AS skipped, 0::int8 AS written_off, 0::int8 AS declined, 0::int8 AS still_to_do
  FROM open AS o
UNION ALL
SELECT NULL, '0', '0', coalesce(sum(periods_due), 0)::int8, coalesce((SELECT sum(n) FROM counted WHERE state IN ('captured', 'paid')), 0)::int8,
       coalesce((SELECT n FROM counted WHERE state = 'waived'), 0)::int8, coalesce((SELECT n FROM counted WHERE state = 'skipped'), 0)::int8,
       coalesce((SELECT n FROM counted WHERE state = 'written_off'), 0)::int8,
       coalesce(sum(declined), 0)::int8, coalesce(sum(still_to_do), 0)::int8
  FROM open;

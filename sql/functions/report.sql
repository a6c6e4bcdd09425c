-- report(now): what an accountant books, by currency and month in UTC; `now` counts as now (null: the clock). An array of currency,
-- month as YYYY-MM (null: the sums of the currency), then minor units as text, since 64 bits may not hold them: deposits, by_card (captured,
-- less what went back), subscription_revenue (charges and prorations), order_revenue, refunds (and voids), withdrawals, wallets, owed, written_off,
-- difference. wallets: at the end of the month, as the ledger says; in the row of sums what the wallets hold, and
-- difference is how much more that is. owed: periods that began in the month, by now, of subscriptions that are past_due or
-- unpaid, or were so when they were parked: retries counts the declined tries of the open period. written_off: periods that began in
-- the month, and that nobody will pay.
CREATE OR REPLACE FUNCTION report(p_now timestamptz DEFAULT NULL)
RETURNS jsonb LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
  WITH clock AS (
    SELECT coalesce(p_now, now()) AS now
  ), moved AS (
    SELECT currency, date_trunc('month', moved_at, 'UTC') AS month,
           sum(amount_minor) FILTER (WHERE kind = 'deposit') AS deposits,
           sum(CASE credit WHEN 'wallet' THEN -amount_minor ELSE amount_minor END)
             FILTER (WHERE kind IN ('charge', 'card', 'proration') AND credit <> 'order_revenue') AS subscription_revenue,
           sum(CASE WHEN debit = 'gateway' THEN amount_minor ELSE -amount_minor END) FILTER (WHERE 'gateway' IN (debit, credit)) AS by_card,
           sum(amount_minor) FILTER (WHERE credit = 'order_revenue') AS order_revenue,
           sum(amount_minor) FILTER (WHERE kind IN ('refund', 'void')) AS refunds,
           sum(amount_minor) FILTER (WHERE kind = 'withdrawal') AS withdrawals,
           sum(CASE WHEN credit = 'wallet' THEN amount_minor ELSE 0 END - CASE WHEN debit = 'wallet' THEN amount_minor ELSE 0 END) AS net
      FROM ledger
     GROUP BY currency, date_trunc('month', moved_at, 'UTC')
  ), behind AS (
    SELECT subscription_id, currency, amount_minor, trial_periods, terms_from_no, anchor_at, unit, every, next_period_no,
           least((SELECT now FROM clock), cancel_at - interval '1 microsecond') AS until,
           period_start(anchor_at, unit, every, next_period_no) AS open_at
      FROM subscriptions WHERE state IN ('past_due', 'unpaid', 'parked') AND retries > 0
  ), owed AS (
    SELECT currency, date_trunc('month', starts, 'UTC') AS month,
           sum(CASE WHEN terms_from_no IS NULL AND no >= trial_periods THEN amount_minor
                    ELSE cost_of_periods(subscription_id, no, no, trial_periods, terms_from_no, amount_minor) END) AS owed
      FROM behind, -- more periods than can have begun; those that have not are left out
           generate_series(next_period_no, next_period_no + ceil(extract(epoch FROM until - open_at) / 86400
             / (every * CASE unit WHEN 'day' THEN 1 WHEN 'week' THEN 7 WHEN 'month' THEN 28 ELSE 365 END))::bigint) AS no,
           period_start(anchor_at, unit, every, no) AS starts
     WHERE starts <= until
     GROUP BY currency, date_trunc('month', starts, 'UTC')
  ), given_up AS (
    SELECT s.currency, date_trunc('month', period_start(s.anchor_at, s.unit, s.every, e.from_period), 'UTC') AS month,
           sum(e.amount_minor) AS written_off
      FROM events AS e JOIN subscriptions AS s USING (subscription_id)
     WHERE e.event = 'written_off'
     GROUP BY 1, 2
  ), months AS (
    SELECT currency, month, coalesce(deposits, 0) AS deposits, coalesce(subscription_revenue, 0) AS subscription_revenue,
           coalesce(by_card, 0) AS by_card, coalesce(order_revenue, 0) AS order_revenue, coalesce(refunds, 0) AS refunds, coalesce(withdrawals, 0) AS withdrawals,
           coalesce(owed, 0) AS owed, coalesce(written_off, 0) AS written_off, coalesce(net, 0) AS net,
           sum(coalesce(net, 0)) OVER (PARTITION BY currency ORDER BY month) AS wallets
      FROM moved FULL JOIN owed USING (currency, month) FULL JOIN given_up USING (currency, month)
  ), held AS (
    SELECT currency, sum(balance_minor) AS wallets FROM users GROUP BY currency
  ), summed AS (
    SELECT currency, coalesce(sum(deposits), 0) AS deposits, coalesce(sum(subscription_revenue), 0) AS subscription_revenue,
           coalesce(sum(by_card), 0) AS by_card, coalesce(sum(order_revenue), 0) AS order_revenue, coalesce(sum(refunds), 0) AS refunds,
           coalesce(sum(withdrawals), 0) AS withdrawals, coalesce(sum(owed), 0) AS owed, coalesce(sum(written_off), 0) AS written_off,
           coalesce(min(held.wallets), 0) AS wallets, coalesce(min(held.wallets), 0) - coalesce(sum(net), 0) AS difference
      FROM months FULL JOIN held USING (currency) GROUP BY currency
  ), line AS (
    SELECT currency, to_char(month AT TIME ZONE 'UTC', 'YYYY-MM') AS month, deposits, by_card, subscription_revenue, order_revenue, refunds,
           withdrawals, wallets, owed, written_off, 0 AS difference
      FROM months
    UNION ALL
    SELECT currency, NULL, deposits, by_card, subscription_revenue, order_revenue, refunds, withdrawals, wallets, owed, written_off, difference
      FROM summed
  )
  SELECT coalesce(jsonb_agg(jsonb_build_object('currency', currency, 'month', month, 'deposits', deposits::text, 'by_card', by_card::text,
           'subscription_revenue', subscription_revenue::text, 'order_revenue', order_revenue::text, 'refunds', refunds::text,
           'withdrawals', withdrawals::text, 'wallets', wallets::text, 'owed', owed::text, 'written_off', written_off::text,
           'difference', difference::text) ORDER BY currency, month NULLS LAST), '[]')
    FROM line
$$;
COMMENT ON FUNCTION report IS
  'Revenue, deposits, refunds, wallets and debts by currency and month. Errors: none of its own.';
REVOKE ALL ON FUNCTION report FROM PUBLIC;
GRANT EXECUTE ON FUNCTION report TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;

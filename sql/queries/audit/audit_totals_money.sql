-- audit_totals_money: where the money went, one row per currency. Locks: none.
-- Columns: currency, deposited, by_card (captured by the gateway, less what went back to cards), withdrawn, in_wallets, subscription_revenue
-- (charges and prorations), order_revenue, refunded (refunds and voids), difference (0 when none is lost or made). Sums as text: 64 bits may not hold them.
-- While all wallets have one currency, the entries are read without their own: PostgreSQL then leaves out the joins of the view.
WITH sole AS (
  SELECT CASE WHEN min(currency) = max(currency) THEN min(currency) END AS currency FROM users
), entry AS (
  SELECT (SELECT currency FROM sole) AS currency, kind, amount_minor, debit, credit FROM open_ledger
   WHERE (SELECT currency FROM sole) IS NOT NULL
   UNION ALL
  SELECT currency, kind, amount_minor, debit, credit FROM open_ledger WHERE (SELECT currency FROM sole) IS NULL
)
SELECT currency,
       coalesce(deposited, 0)::text AS deposited,
       coalesce(by_card, 0)::text AS by_card,
       coalesce(withdrawn, 0)::text AS withdrawn,
       coalesce(in_wallets, 0)::text AS in_wallets,
       coalesce(subscription_revenue, 0)::text AS subscription_revenue,
       coalesce(order_revenue, 0)::text AS order_revenue,
       coalesce(refunded, 0)::text AS refunded,
       (coalesce(deposited, 0) + coalesce(by_card, 0) - coalesce(withdrawn, 0) - coalesce(in_wallets, 0) - coalesce(subscription_revenue, 0)
        - coalesce(order_revenue, 0) + coalesce(refunded, 0))::text AS difference
  FROM (SELECT currency, sum(balance_minor) AS in_wallets FROM users GROUP BY currency) AS wallet
  FULL JOIN (SELECT currency,
                    sum(amount_minor) FILTER (WHERE debit = 'cash') AS deposited,
                    sum(CASE WHEN debit = 'gateway' THEN amount_minor ELSE -amount_minor END) FILTER (WHERE 'gateway' IN (debit, credit)) AS by_card,
                    sum(amount_minor) FILTER (WHERE credit = 'cash') AS withdrawn,
                    sum(CASE credit WHEN 'wallet' THEN -amount_minor ELSE amount_minor END)
                      FILTER (WHERE kind IN ('charge', 'card', 'proration') AND credit <> 'order_revenue') AS subscription_revenue,
                    sum(amount_minor) FILTER (WHERE kind IN ('refund', 'void')) AS refunded,
                    sum(amount_minor) FILTER (WHERE credit = 'order_revenue') AS order_revenue
               FROM (TABLE entry
                      UNION ALL
                     SELECT currency, split_part(kind, ' ', 1), total, split_part(split_part(kind, ' ', 2), '-', 1), split_part(kind, '-', 2)
                       FROM seals WHERE table_name = 'ledger') AS all_months
              GROUP BY currency) AS moved USING (currency)
 ORDER BY currency;

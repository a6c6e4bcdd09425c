-- audit_totals_money: where the money went, one row per currency. Locks: none.
-- Columns: currency, deposited, in_wallets, subscription_revenue, order_revenue, difference (0 when none is
-- lost or made). Sums as text: 64 bits may not hold them.
SELECT currency,
       coalesce(deposited, 0)::text AS deposited,
       coalesce(in_wallets, 0)::text AS in_wallets,
       coalesce(subscription_revenue, 0)::text AS subscription_revenue,
       coalesce(order_revenue, 0)::text AS order_revenue,
       (coalesce(deposited, 0) - coalesce(in_wallets, 0) - coalesce(subscription_revenue, 0)
        - coalesce(order_revenue, 0))::text AS difference
  FROM (SELECT currency, sum(balance_minor) AS in_wallets FROM ledgerlock.users GROUP BY currency) AS wallet
  FULL JOIN (SELECT currency,
                    sum(amount_minor) FILTER (WHERE debit = 'cash') AS deposited,
                    sum(amount_minor) FILTER (WHERE credit = 'subscription_revenue') AS subscription_revenue,
                    sum(amount_minor) FILTER (WHERE credit = 'order_revenue') AS order_revenue
               FROM ledgerlock.transfers GROUP BY currency) AS moved USING (currency)
 ORDER BY currency;

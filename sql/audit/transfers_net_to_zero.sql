-- Every transfer takes an amount above zero from one account to the other that its kind names.
-- One row is both sides of a transfer, so all accounts together sum to zero.
SELECT format('%s %s/%s', kind, source, leg) AS what,
       format('%s from %s to %s', amount_minor, debit, credit) AS detail
  FROM open_transfers
 WHERE amount_minor <= 0
    OR (kind, debit, credit) NOT IN (('deposit', 'cash', 'wallet'),
                                     ('charge', 'wallet', 'subscription_revenue'),
                                     ('payment', 'wallet', 'order_revenue'),
                                     ('proration', 'wallet', 'subscription_revenue'),
                                     ('proration', 'subscription_revenue', 'wallet'),
                                     ('refund', 'subscription_revenue', 'wallet'),
                                     ('refund', 'order_revenue', 'wallet'),
                                     ('void', 'subscription_revenue', 'wallet'),
                                     ('void', 'order_revenue', 'wallet'),
                                     ('withdrawal', 'wallet', 'cash'))
 ORDER BY kind, source, leg;

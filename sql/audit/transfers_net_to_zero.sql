-- Every transfer takes an amount above zero from one account to the other that its kind names.
-- One row is both sides, so then all accounts together net to zero.
SELECT format('%s %s/%s', kind, source, leg) AS what,
       format('%s from %s to %s', amount_minor, debit, credit) AS detail
  FROM ledgerlock.transfers
 WHERE amount_minor <= 0
    OR (kind, debit, credit) NOT IN (('deposit', 'cash', 'wallet'),
                                     ('charge', 'wallet', 'subscription_revenue'),
                                     ('payment', 'wallet', 'order_revenue'))
 ORDER BY kind, source, leg;

-- Every transfer takes an amount above zero from one account to the other that its kind names.
-- One row is both sides, so then all accounts together net to zero.
SELECT format('transfer %s', transfer_id) AS what,
       format('%s of %s from %s to %s', kind, amount_minor, debit, credit) AS detail
  FROM ledgerlock.transfers
 WHERE amount_minor <= 0
    OR (kind, debit, credit) NOT IN (('deposit', 'cash', 'wallet'),
                                     ('charge', 'wallet', 'subscription_revenue'),
                                     ('payment', 'wallet', 'order_revenue'))
 ORDER BY transfer_id;

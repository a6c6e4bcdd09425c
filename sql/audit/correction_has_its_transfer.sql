-- Every correction has its transfer, from the account that was paid or out of the wallet, and every refund, void and withdrawal its
-- correction, of the same user, amount, currency and time.
SELECT format('correction %s', coalesce(c.correction_id, t.source)) AS what,
       format('%s of %s for user %s; transfer: %s of %s for user %s', coalesce(c.kind, 'none'), c.amount_minor, c.user_id,
              coalesce(t.kind, 'none'), t.amount_minor, t.user_id) AS detail
  FROM (SELECT * FROM corrections WHERE at >= (SELECT first_open())) AS c
  FULL JOIN (SELECT * FROM open_transfers WHERE kind IN ('refund', 'void', 'withdrawal')) AS t ON t.source = c.correction_id
 WHERE (t.kind, t.leg, t.user_id, t.amount_minor, t.currency, t.source_at, t.moved_at, t.debit, t.credit) IS DISTINCT FROM
       (CASE c.kind WHEN 'return' THEN 'refund' ELSE c.kind END, 0::bigint, c.user_id, c.amount_minor, c.currency::text, c.at, c.at,
        CASE WHEN c.kind = 'withdrawal' THEN 'wallet' WHEN c.of_kind = 'payment' THEN 'order_revenue' ELSE 'subscription_revenue' END,
        CASE c.kind WHEN 'withdrawal' THEN 'cash' ELSE 'wallet' END)
 ORDER BY 1;

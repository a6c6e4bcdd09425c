-- Every refund, void and return names what was paid, each begins where the one before ended, and no period and no order gives
-- back more than was paid for it. The payment may be of a closed month; entries of open months are few.
WITH chain AS (
  SELECT w.*, coalesce(sum(amount_minor) OVER (PARTITION BY of_kind, of_source, of_leg ORDER BY entry_id
                                               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
    FROM wallet_entries AS w WHERE kind IN ('refund', 'void', 'return')
), recent AS (
  SELECT * FROM chain WHERE at >= (SELECT first_open())
), period AS (
  SELECT of_source AS subscription_id, of_leg AS period_no, of_at AS starts FROM recent WHERE of_kind = 'charge'
   UNION
  SELECT p.of_source, p.of_leg, p.of_at
    FROM recent AS r JOIN wallet_entries AS p ON p.entry_id = r.of_source AND p.kind = 'proration' WHERE r.of_kind = 'proration'
   UNION
  SELECT of_source, of_leg, of_at FROM wallet_entries
   WHERE kind = 'proration' AND at >= (SELECT first_open()) AND amount_minor > 0
)
SELECT format('%s %s', r.kind, r.entry_id) AS what,
       format('%s after %s of %s %s/%s, which is %s of user %s; given back before: %s', r.amount_minor, r.before_minor, r.of_kind,
              r.of_source, r.of_leg, coalesce(t.amount_minor::text, 'nothing'), t.user_id, r.before) AS detail
  FROM recent AS r
  LEFT JOIN LATERAL (SELECT amount_minor, user_id FROM ledger
                      WHERE (kind, source, leg, source_at) = (r.of_kind, r.of_source, r.of_leg, r.of_at) AND debit IN ('wallet', 'gateway')
                     OFFSET 0) AS t ON true -- a look-up each, in one partition: they are few
 WHERE (t.amount_minor, t.user_id, r.before) IS DISTINCT FROM (r.of_minor, r.user_id, r.before_minor::numeric)
    OR r.before_minor + r.amount_minor::numeric > r.of_minor
    OR (r.kind = 'void' AND r.amount_minor <> r.of_minor)
 UNION ALL
SELECT format('subscription %s period %s', subscription_id, period_no),
       format('%s are paid after refunds', coalesce(paid_for_period(subscription_id, period_no, starts)::text, 'none'))
  FROM period
 WHERE coalesce(paid_for_period(subscription_id, period_no, starts), -1) < 0
 ORDER BY what;

-- Row at a time, as it is often written: the oldest due row that nobody holds, its effects, COMMIT.
BEGIN;
SELECT subscription_id AS sub, user_id AS usr, amount_minor AS amount, next_period_no AS no,
       ledgerlock.period_start(anchor_at, unit, every, next_period_no) AS starts,
       ledgerlock.period_start(anchor_at, unit, every, next_period_no + 1) AS ends
  FROM ledgerlock.subscriptions
 WHERE state IN ('active', 'past_due') AND next_due_at <= now()
 ORDER BY next_due_at
 LIMIT 1
   FOR UPDATE SKIP LOCKED \gset
UPDATE ledgerlock.users SET balance_minor = balance_minor - :amount::bigint
 WHERE user_id = :usr::bigint AND balance_minor >= :amount::bigint;
INSERT INTO ledgerlock.charges (subscription_id, period_no, user_id, period_start, period_end, amount_minor, state,
                                tries, fence, worker, charged_at)
VALUES (:sub::bigint, :no::bigint, :usr::bigint, :starts::timestamptz, :ends::timestamptz, :amount::bigint, 'captured',
        1, 0, 'baseline', now());
UPDATE ledgerlock.subscriptions SET next_period_no = next_period_no + 1, next_due_at = :ends::timestamptz, retries = 0
 WHERE subscription_id = :sub::bigint;
COMMIT;

-- Counts a call that is about to be made. $1 bigint: charge. $2 bigint: attempt. $3 bigint: now. Columns: a row if the
-- attempt is not decided. Locks: the row.
UPDATE ledgerlock_lab.lab_card_attempts SET calls = calls + 1, sent_at = greatest(sent_at, $3::bigint)
 WHERE charge_id = $1::bigint AND attempt_no = $2::bigint AND state = 'sent'
RETURNING attempt_no

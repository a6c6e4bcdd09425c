-- Writes an attempt, unless another worker has. $1 bigint: charge. $2 bigint: number. $3 bigint: amount. $4 bigint: now.
-- Columns: none. Locks: the new row.
INSERT INTO ledgerlock_lab.lab_card_attempts (charge_id, attempt_no, amount_minor, state, calls, sent_at)
VALUES ($1::bigint, $2::bigint, $3::bigint, 'sent', 0, $4::bigint) ON CONFLICT DO NOTHING

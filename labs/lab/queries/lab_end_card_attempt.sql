-- Decides an attempt; 'paid' is the end of its charge, too. $1 bigint: charge. $2 bigint: attempt, 0: this program writes
-- none. $3 text: paid, declined or void. $4 bigint: time of the latest call that the decision knows of. Columns: none.
-- Locks: both rows.
WITH ended AS (
  UPDATE ledgerlock_lab.lab_card_attempts SET state = $3::text
   WHERE charge_id = $1::bigint AND attempt_no = $2::bigint AND state = 'sent' AND sent_at <= $4::bigint
)
UPDATE ledgerlock_lab.lab_card_charges SET is_paid = true WHERE charge_id = $1::bigint AND $3::text = 'paid'

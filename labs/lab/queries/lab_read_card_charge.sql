-- Reads a charge and its latest attempt. $1 bigint: charge. Columns: 1 if it is paid, price, number of the attempt (0:
-- none), its state, amount, calls and time. Locks: none.
SELECT c.is_paid::int::bigint, c.price_minor, coalesce(a.attempt_no, 0), coalesce(a.state, ''), coalesce(a.amount_minor, 0),
       coalesce(a.calls, 0), coalesce(a.sent_at, 0)
  FROM ledgerlock_lab.lab_card_charges AS c
  LEFT JOIN ledgerlock_lab.lab_card_attempts AS a
    ON a.charge_id = c.charge_id
   AND a.attempt_no = (SELECT max(b.attempt_no) FROM ledgerlock_lab.lab_card_attempts AS b WHERE b.charge_id = c.charge_id)
 WHERE c.charge_id = $1::bigint

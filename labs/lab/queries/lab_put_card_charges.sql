-- Makes charges that are due. $1 bigint: the last, from 1 on. $2 bigint: price. Columns: none. Locks: the new rows.
INSERT INTO ledgerlock_lab.lab_card_charges (charge_id, price_minor, is_paid)
SELECT g, $2::bigint, false FROM generate_series(1, $1::bigint) AS g

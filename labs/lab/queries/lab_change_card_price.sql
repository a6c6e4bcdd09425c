-- Changes what a charge costs. $1 bigint: charge. $2 bigint: price. Columns: none. Locks: the row.
UPDATE ledgerlock_lab.lab_card_charges SET price_minor = $2::bigint WHERE charge_id = $1::bigint

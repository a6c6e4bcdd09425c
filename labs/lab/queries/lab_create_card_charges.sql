-- Charges that are paid by card. Columns: none.
CREATE TABLE IF NOT EXISTS ledgerlock_lab.lab_card_charges (
  charge_id bigint PRIMARY KEY, price_minor bigint NOT NULL, is_paid boolean NOT NULL)

-- Attempts, each written before the gateway is asked: sent, paid, declined, void. Times are seconds of a clock that the
-- schedule moves. Columns: none.
CREATE TABLE IF NOT EXISTS ledgerlock_lab.lab_card_attempts (
  charge_id bigint, attempt_no bigint, amount_minor bigint NOT NULL, state text NOT NULL, calls bigint NOT NULL,
  sent_at bigint NOT NULL, PRIMARY KEY (charge_id, attempt_no))

-- 008: a currency is checked when it is written.
--
-- A CHECK of the table runs at every update of a wallet or a shelf, and this one is a regular expression: 1.8 % of a
-- charge. The check of a domain runs where a value becomes one.
CREATE DOMAIN ledgerlock.currency AS text COLLATE "C" CONSTRAINT currency_is_iso CHECK (VALUE ~ '^[A-Z]{3}$');
COMMENT ON DOMAIN ledgerlock.currency IS 'ISO 4217 code: three capital letters.';
ALTER TABLE ledgerlock.users DROP CONSTRAINT currency_is_iso, ALTER COLUMN currency TYPE ledgerlock.currency;
ALTER TABLE ledgerlock.stock DROP CONSTRAINT stock_currency_check, ALTER COLUMN currency TYPE ledgerlock.currency;

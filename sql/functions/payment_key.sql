-- payment_key(instance, paid, attempt): the key that the gateway knows an attempt by, of durable ids alone. paid: what is paid or given
-- back, as 'kind/source/leg'; 'orphan/' and the gateway's id of an orphan that is given back.
CREATE OR REPLACE FUNCTION payment_key(p_instance uuid, p_paid text, p_attempt_no integer) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
RETURN 'll_' || encode(sha256(convert_to(p_instance || '/' || p_paid || '/' || p_attempt_no, 'UTF8')), 'hex');
COMMENT ON FUNCTION payment_key IS 'The key that the gateway knows an attempt by.';
REVOKE ALL ON FUNCTION payment_key FROM PUBLIC;
GRANT EXECUTE ON FUNCTION payment_key TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;

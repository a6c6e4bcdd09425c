-- payment_looks(calls, first_sent_at): true if a call of this number looks the payment up, and does not ask for money: the key was tried
-- three times, and a gateway replays an error that it stored; or it is 20 hours old, and gateways forget keys after 24.
CREATE OR REPLACE FUNCTION payment_looks(p_calls integer, p_first_sent_at timestamptz)
RETURNS boolean LANGUAGE sql STABLE
RETURN p_calls > 3 OR coalesce(p_first_sent_at < now() - interval '20 hours', false);
COMMENT ON FUNCTION payment_looks IS 'True if a call of this number looks a payment up, and does not ask for money.';
REVOKE ALL ON FUNCTION payment_looks FROM PUBLIC;
GRANT EXECUTE ON FUNCTION payment_looks TO ledgerlock_worker;

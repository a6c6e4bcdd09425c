-- balance(user): what is in the wallet of this user, in minor units. No row: there is no such user.
CREATE OR REPLACE FUNCTION balance(p_user_id bigint)
RETURNS TABLE (balance_minor bigint, currency text, closed_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT u.balance_minor, u.currency, u.closed_at FROM users AS u WHERE u.user_id = p_user_id
$$;
COMMENT ON FUNCTION balance IS 'What is in a wallet, its currency, and since when the account is closed.';
REVOKE ALL ON FUNCTION balance FROM PUBLIC;
GRANT EXECUTE ON FUNCTION balance TO ledgerlock_shop, ledgerlock_support;

-- claim_users(token, ids): claims users: locks their rows in key order before anything is read or decided, and only rows whose
-- fence is not above the token. NO KEY UPDATE: a client that places an order takes a key share lock on its user and need
-- not wait.
-- SKIP LOCKED: a row that another session has locked is left out; its work stays due, and no transaction waits. A row
-- that is not returned is busy, fenced or absent: pool_refused_users tells which.
-- Returns one row: transaction id, user_ids in their order (null: none was claimed).
CREATE OR REPLACE FUNCTION claim_users(p_token bigint, p_ids bigint[])
RETURNS TABLE (xid bigint, user_ids bigint[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
SELECT pg_current_xact_id()::text::bigint, array_agg(user_id)
  FROM (SELECT user_id
          FROM users
         WHERE user_id = ANY ($2::bigint[]) AND fence <= $1::bigint
         ORDER BY user_id
           FOR NO KEY UPDATE SKIP LOCKED) AS claimed;
END $$;
COMMENT ON FUNCTION claim_users IS
  'Locks the wallets of a batch. The locks last until the end of the transaction.';
REVOKE ALL ON FUNCTION claim_users FROM PUBLIC;
GRANT EXECUTE ON FUNCTION claim_users TO ledgerlock_worker;

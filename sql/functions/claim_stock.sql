-- claim_stock(token, ids): claims SKUs, after the users and in the same way (claim_users).
-- Returns one row: transaction id, sku_ids in their order (null: none was claimed).
CREATE OR REPLACE FUNCTION claim_stock(p_token bigint, p_ids bigint[])
RETURNS TABLE (xid bigint, sku_ids bigint[]) LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
SELECT pg_current_xact_id()::text::bigint, array_agg(sku_id)
  FROM (SELECT sku_id
          FROM stock
         WHERE sku_id = ANY ($2::bigint[]) AND fence <= $1::bigint
         ORDER BY sku_id
           FOR NO KEY UPDATE SKIP LOCKED) AS claimed;
END $$;
COMMENT ON FUNCTION claim_stock IS
  'Locks the SKUs of a batch. The locks last until the end of the transaction.';
REVOKE ALL ON FUNCTION claim_stock FROM PUBLIC;
GRANT EXECUTE ON FUNCTION claim_stock TO ledgerlock_worker;

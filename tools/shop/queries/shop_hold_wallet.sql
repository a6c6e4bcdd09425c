-- Locks the wallet of the newest item that is due on the unguarded side, until the transaction ends. Columns: user; no row: nothing
-- is due. Locks: the row.
SELECT user_id
  FROM ledgerlock_plain.wallets
 WHERE user_id = (SELECT user_id FROM ledgerlock_plain.items WHERE done < periods ORDER BY item_id DESC LIMIT 1)
   FOR UPDATE

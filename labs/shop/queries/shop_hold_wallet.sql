-- Locks the wallet of the newest subscription of which two periods are due on the unguarded side (a worker may be about to write one of
-- them), until the transaction ends. done < periods is the condition of the index. Columns: user; no row: there is none. Locks: the row.
SELECT user_id
  FROM ledgerlock_plain.wallets
 WHERE user_id = (SELECT user_id FROM ledgerlock_plain.items
                   WHERE kind = 'subscription' AND done < periods AND done + 1 < periods ORDER BY item_id DESC LIMIT 1)
   FOR UPDATE

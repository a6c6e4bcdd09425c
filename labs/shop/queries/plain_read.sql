-- One item as it is now, under the lock in Redis. $1 text: kind. $2 bigint: item.
-- Columns: done, qty, amount_minor, on_hand, by_card (bool); no row: nothing of it is due. Locks: none.
SELECT i.done, i.qty, i.amount_minor, coalesce(s.on_hand, 0), i.kind = 'subscription' AND w.by_card AS by_card
  FROM ledgerlock_plain.items AS i
  LEFT JOIN ledgerlock_plain.stock AS s ON s.sku_id = i.sku_id
  LEFT JOIN ledgerlock_plain.wallets AS w ON w.user_id = i.user_id
 WHERE i.kind = $1::text AND i.item_id = $2::bigint AND i.done < i.periods

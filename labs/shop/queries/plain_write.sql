-- Charges a period, or sells an order, by what was read before: no fence, no key, no check; the counts are for the figures alone.
-- $1 text: kind. $2 bigint: item. $3 bigint: period. $4 bigint: user. $5 bigint: SKU. $6 bigint: pieces. $7 bigint: amount.
-- $8 bigint: the new number on hand. Columns: none. Locks: the rows.
WITH charged AS (
  INSERT INTO ledgerlock_plain.charges (kind, item_id, period_no, sku_id, qty, amount_minor)
  VALUES ($1::text, $2::bigint, $3::bigint, $5::bigint, $6::bigint, $7::bigint)
), paid AS (
  UPDATE ledgerlock_plain.wallets SET balance_minor = balance_minor - $7::bigint, charges = charges + 1 WHERE user_id = $4::bigint
), moved AS (
  UPDATE ledgerlock_plain.stock SET on_hand = $8::bigint, sold = sold + $6::bigint WHERE sku_id = $5::bigint
)
UPDATE ledgerlock_plain.items
   SET done = $3::bigint + 1, again = again + (charged > $3::bigint)::int, charged = greatest(charged, $3::bigint + 1)
 WHERE kind = $1::text AND item_id = $2::bigint

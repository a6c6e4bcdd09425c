-- Order lines before there are orders: what is in stock and what an order costs follow from them.
-- Locks: none. Gone at the end of the transaction.
CREATE TEMPORARY TABLE bench_lines (
  order_id         bigint NOT NULL,
  sku_id           bigint NOT NULL,
  unit_price_minor bigint NOT NULL,
  qty              bigint NOT NULL
) ON COMMIT DROP

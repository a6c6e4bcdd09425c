-- An item is a subscription of one article: each of its periods is charged and takes one unit of its stock.
-- No key and no check: what keeps it right is what the laboratory compares. Columns: none.
CREATE TABLE IF NOT EXISTS ledgerlock_lab.lab_items (
  item_id bigint, periods bigint, next_period bigint, units bigint, on_hand bigint, fence bigint)

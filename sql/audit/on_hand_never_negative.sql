-- No SKU has less than nothing on hand.
SELECT format('sku %s', sku) AS what, format('on hand %s', on_hand) AS detail
  FROM stock
 WHERE on_hand < 0
 ORDER BY sku_id;

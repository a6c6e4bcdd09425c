-- The seals of a month. $1 text: its first day. Columns: table, kind, currency, rows, total as text. Locks: none.
SELECT table_name, kind, currency, row_ct, total::text
  FROM seals
 WHERE month = $1::text::date AND table_name <> 'months'
 ORDER BY table_name, kind, currency

-- Next bad lines of a kind. $1 text kind, $2 bigint the last line seen. Columns: line bigint, reason text, raw text.
-- Locks: none.
SELECT line, reason, raw
  FROM pg_temp.import_bad
 WHERE kind = $1::text AND line > $2::bigint
 ORDER BY line
 LIMIT 500

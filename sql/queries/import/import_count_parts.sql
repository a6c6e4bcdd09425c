-- The last numbers of what is stored in parts, and the first. Columns: heads bigint, lines of subscriptions bigint, and again.
-- Locks: none.
SELECT h.last, s.last, h.first, s.first
  FROM (SELECT coalesce(max(no), 0) AS last, coalesce(min(no), 1) AS first FROM pg_temp.import_heads) AS h,
       (SELECT coalesce(max(line), 0) AS last, coalesce(min(line), 1) AS first FROM pg_temp.import_subscriptions) AS s

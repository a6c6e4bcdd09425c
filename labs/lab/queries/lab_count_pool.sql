-- The work of the pools of a cell. Columns: charges captured and orders decided, keys that workers of billing met busy,
-- keys that those of orders met busy, batches refused or given up. Locks: none.
SELECT (SELECT count(*) FROM charges WHERE state = 'captured')
         + (SELECT count(*) FROM orders WHERE state <> 'pending'),
       (SELECT coalesce(sum((counters ->> 'busy')::bigint), 0)::bigint FROM workers WHERE job = 'billing'),
       (SELECT coalesce(sum((counters ->> 'busy')::bigint), 0)::bigint FROM workers WHERE job = 'orders'),
       (SELECT count(*) FROM lock_incidents WHERE kind IN ('lost', 'fenced'))

-- status_rates: what all workers have counted so far; two samples make a rate. Locks: none.
-- Columns: charges (charged and declined), orders (fulfilled and rejected), batches.
SELECT coalesce(sum(coalesce((counters ->> 'charged')::int8, 0)
                    + coalesce((counters ->> 'declined')::int8, 0)), 0)::int8 AS charges,
       coalesce(sum(coalesce((counters ->> 'fulfilled')::int8, 0)
                    + coalesce((counters ->> 'rejected')::int8, 0)), 0)::int8 AS orders,
       coalesce(sum((counters ->> 'batches')::int8), 0)::int8 AS batches
  FROM ledgerlock.workers;

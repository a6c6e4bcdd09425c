-- audit_totals_orders: orders by state. Columns: in, fulfilled, rejected, cancelled, pending, paying, parked. Locks: none.
SELECT count(*)::int8 AS "in",
       count(*) FILTER (WHERE state = 'fulfilled')::int8 AS fulfilled,
       count(*) FILTER (WHERE state = 'rejected')::int8 AS rejected,
       count(*) FILTER (WHERE state = 'cancelled')::int8 AS cancelled,
       count(*) FILTER (WHERE state = 'pending')::int8 AS pending,
       count(*) FILTER (WHERE state = 'paying')::int8 AS paying,
       count(*) FILTER (WHERE state = 'parked')::int8 AS parked
  FROM orders;

-- audit_totals_reasons: rejected orders by reason, every reason. Columns: name, count. Locks: none.
SELECT reason.name, coalesce(n, 0)::int8 AS count
  FROM unnest(ARRAY['out_of_stock', 'insufficient_funds', 'unknown_sku']) WITH ORDINALITY AS reason (name, nr)
  LEFT JOIN (SELECT reason AS name, count(*) AS n FROM orders
              WHERE state = 'rejected' GROUP BY 1) AS o USING (name)
 ORDER BY nr;

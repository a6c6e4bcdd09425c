-- One order of each user for one unit of an article, as clients place them. $1 bigint: SKU. $2 bigint: first user.
-- $3 bigint: last user. Columns: orders. Locks: the new rows.
SELECT count(place_order(g, 'lab-' || $1::bigint,
                                    jsonb_build_array(jsonb_build_object('sku', 'lab-' || $1, 'qty', 1))))
  FROM generate_series($2::bigint, $3::bigint) AS g

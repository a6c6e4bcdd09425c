-- Takes units of a SKU out for another cell, or puts those in that came from it. $1 text: the SKU; $2 int8: units, below zero for
-- those that go; $3 text: the key; $4 int8: the other cell. Column: on hand afterwards. Locks: the SKU.
SELECT adjust_stock($1::text, $2::bigint, CASE WHEN $2::bigint < 0 THEN 'to cell ' ELSE 'from cell ' END || $4::bigint, $3::text,
                    p_cell => $4::integer)

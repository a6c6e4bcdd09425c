-- explain_row: the life of a row and what it waits for, but for locks in Redis. $1 text: order or subscription. $2 bigint: its id.
-- Locks: none. Column: the document of function explain, as text; null: there is no such row.
SELECT explain($1::text, $2::bigint)::text

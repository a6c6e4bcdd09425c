-- The cell that this schema is, by the first number that migrate gave its users. Locks: none. Column: the number.
SELECT seqstart >> 40 FROM pg_sequence
 WHERE seqrelid = pg_get_serial_sequence(format('%I.users', current_schema()), 'user_id')::regclass

-- The encoding of the database. Columns: text. Locks: none.
SELECT current_setting('server_encoding')

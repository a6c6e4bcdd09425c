-- Who we are here, for a relay's clients to say the same. Columns: database, user. Locks: none.
SELECT current_database()::text, current_user::text

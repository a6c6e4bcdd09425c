-- The names of this session, for other programs to say the same. Columns: database, user. Locks: none.
SELECT current_database()::text, session_user::text

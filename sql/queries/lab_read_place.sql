-- Where this server listens, for a relay to stand in front of it. Columns: folder of its Unix socket, port,
-- database, user. Locks: none.
SELECT trim(split_part(current_setting('unix_socket_directories'), ',', 1)), current_setting('port'),
       current_database()::text, current_user::text

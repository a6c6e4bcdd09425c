-- True if client and server share a machine, as far as their addresses tell. Columns: bool. Locks: none.
SELECT inet_server_addr() IS NULL OR inet_server_addr() = inet_client_addr()

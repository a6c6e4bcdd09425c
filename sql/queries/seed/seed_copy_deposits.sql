-- Takes opening deposits. Locks: the new rows, their users FOR KEY SHARE.
COPY deposits (user_id, idempotency_key, amount_minor, at) FROM STDIN

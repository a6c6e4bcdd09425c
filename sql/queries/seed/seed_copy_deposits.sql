-- Takes opening deposits. Locks: the new rows, their users FOR KEY SHARE.
COPY wallet_entries (user_id, kind, idempotency_key, amount_minor, at) FROM STDIN

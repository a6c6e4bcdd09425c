-- Takes opening deposits. Locks: the new rows.
COPY transfers (kind, source, leg, user_id, source_at, debit, credit, amount_minor, currency, moved_at) FROM STDIN

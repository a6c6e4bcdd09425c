-- Takes opening deposits. Locks: the new rows.
COPY ledgerlock.transfers (kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at) FROM STDIN

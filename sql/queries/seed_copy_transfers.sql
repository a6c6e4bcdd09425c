-- Takes opening deposits with their numbers. Locks: the new rows.
COPY ledgerlock.transfers (transfer_id, kind, source, leg, user_id, debit, credit, amount_minor, currency, moved_at) FROM STDIN

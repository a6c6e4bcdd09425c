-- Takes users with their numbers. Locks: the new rows.
COPY users (user_id, external_ref, balance_minor, currency) FROM STDIN

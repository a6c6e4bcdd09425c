-- Whether a text is an instant. $1 text. Columns: the instant in UTC.
SELECT to_char($1::text::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')

-- Sets what the rows are made from. $1 bigint seed, $2 bigint now in microseconds since 1970, $3 to $6 bigint: users, subscriptions,
-- SKUs, orders, $7 text currency, $8 bigint how many of a hundred users pay by card. base: the number before the first of this cell, which
-- each id is behind. Locks: none.
INSERT INTO pg_temp.seed_of (base, seed, at, users, subscriptions, skus, orders, currency, cards)
SELECT seqstart - 1, $1::bigint, timestamptz '1970-01-01 00:00Z' + $2::bigint * interval '1 microsecond', $3::bigint, $4::bigint, $5::bigint, $6::bigint, $7::text, $8::bigint
  FROM pg_sequence WHERE seqrelid = pg_get_serial_sequence(format('%I.users', current_schema()), 'user_id')::regclass

-- Sets what the rows are made from. $1 bigint seed, $2 bigint now in microseconds since 1970, $3 to $6 bigint: users, subscriptions,
-- SKUs, orders, $7 text currency, $8 bigint how many of a hundred users pay by card. Locks: none.
INSERT INTO pg_temp.seed_of (seed, at, users, subscriptions, skus, orders, currency, cards)
VALUES ($1, timestamptz '1970-01-01 00:00Z' + $2::bigint * interval '1 microsecond', $3, $4, $5, $6, $7, $8)

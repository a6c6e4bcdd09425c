-- Claims users: locks their rows in key order, for this token or a later one only, before anything is read
-- or decided. NO KEY UPDATE: a client placing an order holds a key share of its user and need not wait for us.
-- SKIP LOCKED: a row that another session holds is busy, its work stays due, and nobody waits inside a
-- transaction. A row that is not returned is busy, or fenced: see pool_users_fence.
-- Place and balance are those of the version that is locked, also when it is younger than this snapshot.
-- $1 bigint: token. $2 bigint[]: user ids.
-- One row: transaction id, and in parallel the user_ids in their order, places and balances (null: none is ours).
-- Locks: the rows, until the end.
SELECT pg_current_xact_id()::text::bigint, array_agg(user_id), array_agg(place), array_agg(balance_minor)
  FROM (SELECT user_id, ctid AS place, balance_minor
          FROM ledgerlock.users
         WHERE user_id = ANY ($2::bigint[]) AND fence <= $1::bigint
         ORDER BY user_id
           FOR NO KEY UPDATE SKIP LOCKED) AS claimed

-- After the death of a worker: charges those of its subscriptions with it that are still due, so whose effects it
-- did not commit. They are suspects from then on.
-- $1 bigint[]: subscription ids that it worked. $2 timestamptz: now (null: the database's clock). $3 text: worker.
-- Columns: subscription_id, deaths it is charged with. Locks: the suspects' rows in quarantine.
SELECT item, crashes
  FROM ledgerlock.note_crash('billing', ARRAY(
         SELECT subscription_id FROM ledgerlock.subscriptions
          WHERE subscription_id = ANY ($1::bigint[]) AND state IN ('active', 'past_due')
            AND next_due_at <= coalesce($2::timestamptz, now())),
         $3::text, cardinality($1::bigint[]) = 1)

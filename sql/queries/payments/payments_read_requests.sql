-- The requests to the gateway, after the COMMIT of payments_send_due and outside of any transaction.
-- $1 bigint: token of the batch. $2 bigint[]: payment ids.
-- Columns: payment_id; user_id; the key that the gateway knows the attempt by, of durable ids alone; what is paid or given back, as
-- 'kind/source/leg'; amount in minor units; currency; customer; card; calls so far, with this one; true if it looks the payment up;
-- milliseconds since money was last asked for; time of the first call in seconds since 1970; true if it is for a charge; the gateway's id of the payment that is given
-- back (null: it takes money).
-- Locks: none.
SELECT p.payment_id, p.user_id,
       payment_key(i.instance_id, format('%s/%s/%s', p.kind, p.source, p.leg), p.attempt_no) AS key,
       format('%s/%s/%s', p.kind, p.source, p.leg) AS paid, p.amount_minor, p.currency::text, p.customer, p.method, p.calls::bigint,
       payment_looks(p.calls, p.first_sent_at) AS is_look, (extract(epoch FROM now() - p.asked_at) * 1000)::bigint AS asked_ms, extract(epoch FROM p.first_sent_at)::bigint AS sent_s, p.kind = 'charge' AS is_charge,
       CASE p.kind WHEN 'refund' THEN (SELECT q.reference FROM wallet_entries AS w JOIN payments AS q ON q.payment_id = w.of_source
                                        WHERE w.entry_id = p.source AND w.kind <> 'deposit') END AS of_reference
  FROM instance AS i, payments AS p
 WHERE p.payment_id = ANY ($2::bigint[]) AND p.state = 'sent' AND p.fence = $1::bigint

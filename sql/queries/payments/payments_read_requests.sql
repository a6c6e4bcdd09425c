-- What the gateway is to be asked, after the COMMIT of payments_send_due and outside of any transaction.
-- $1 bigint: token of the batch. $2 bigint[]: payment ids.
-- Columns: payment_id; user_id; the key that the gateway knows the attempt by, of durable ids alone; what is paid, as
-- 'subscription/period'; amount in minor units; currency; customer; card; calls so far, with this one; milliseconds since the first, and
-- its time in seconds since 1970.
-- Locks: none.
SELECT p.payment_id, p.user_id,
       'll_' || encode(sha256(convert_to(format('%s/subscription/%s/%s/%s', i.instance_id, p.subscription_id, p.period_no, p.attempt_no),
                                         'UTF8')), 'hex') AS key,
       format('%s/%s', p.subscription_id, p.period_no) AS paid, p.amount_minor, p.currency::text, p.customer, p.method, p.calls::bigint,
       (extract(epoch FROM now() - p.first_sent_at) * 1000)::bigint AS age_ms, extract(epoch FROM p.first_sent_at)::bigint AS sent_s
  FROM instance AS i, payments AS p
 WHERE p.payment_id = ANY ($2::bigint[]) AND p.state = 'sent' AND p.fence = $1::bigint

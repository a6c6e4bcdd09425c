-- reconcile(since, asked before, listed): holds what the gateway lists against payments, both ways. listed: an array of objects with kind
-- (payment, refund), reference, of_reference (of a refund: the payment), key and paid (as the gateway was told: payment_key), customer,
-- state (captured, or a word of the gateway), amount in minor units, currency. The list goes back to a day before `since`; an attempt whose first
-- call is older is not missed. Nor is one that was asked for at `asked before` or later, since the list may be older.
-- A row for each entry of either side, by class (docs/cards.md).
-- loose_minor is what of an orphan or a duplicate is to be given back at the gateway. No row is returned where neither side has money.
-- An entry is the attempt with its reference, or one without a reference that has its key. A key of an attempt whose row is lost is found
-- among the first 16 of what it pays. The planner takes a list for a hundred rows: without enable_nestloop it compares no list with another
-- row by row.
CREATE OR REPLACE FUNCTION reconcile(p_since timestamptz, p_asked_before timestamptz, p_listed json)
RETURNS TABLE (class text, kind text, paid text, attempt_no integer, reference text, here text, there text, currency text,
               here_minor bigint, there_minor bigint, loose_minor bigint)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET enable_nestloop = off AS $$
  WITH listed AS MATERIALIZED (
    SELECT l.*, l.there = 'captured' AS is_there
      FROM json_to_recordset(p_listed) AS l (kind text, reference text, of_reference text, key text, paid text, customer text, there text,
                                             there_minor bigint, currency text)
  ), own AS MATERIALIZED (
    SELECT p.payment_id, CASE p.kind WHEN 'refund' THEN 'refund' ELSE 'payment' END AS kind, p.attempt_no, p.reference, p.state AS here, p.customer,
           p.amount_minor AS here_minor, p.currency::text, p.first_sent_at, p.asked_at, p.state NOT IN ('captured', 'declined', 'void') AS is_open,
           n.paid, coalesce(p.reference, payment_key(i.instance_id, n.paid, p.attempt_no)) AS name
      FROM payments AS p, instance AS i, LATERAL (SELECT format('%s/%s/%s', p.kind, p.source, p.leg) AS paid) AS n
     WHERE p.first_sent_at >= p_since - interval '3 days' OR p.state IN ('planned', 'sent', 'unknown', 'parked')
  ), pairs AS MATERIALIZED (
    SELECT DISTINCT ON (n.reference) n.reference, o.payment_id, o.here, o.is_open, o.paid, o.attempt_no, o.here_minor, o.currency
      FROM (SELECT kind, reference, reference AS name, 1 AS nth FROM listed UNION ALL SELECT kind, reference, key, 2 FROM listed) AS n
      JOIN own AS o USING (kind, name)
     ORDER BY n.reference, n.nth
  ), returned AS MATERIALIZED (
    SELECT idempotency_key AS reference FROM events WHERE event = 'orphan_refunded'
  ), both_sides AS MATERIALIZED (
    SELECT l.reference, l.kind, l.of_reference, l.there, l.there_minor, l.is_there, p.payment_id, p.here, p.here_minor, p.attempt_no,
           coalesce(p.is_open, false) AS is_open, coalesce(p.paid, l.paid) AS paid, coalesce(p.currency, l.currency) AS currency,
           l.is_there AND (p.here_minor, p.currency) = (l.there_minor, l.currency) AS is_equal,
           (p.payment_id IS NOT NULL OR k.paid IS NOT NULL
            OR (left(l.key, 3) = 'll_'
                AND l.key IN (SELECT payment_key(i.instance_id, l.paid, n) FROM instance AS i, generate_series(1, 16) AS n))) IS TRUE AS is_ours
      FROM listed AS l LEFT JOIN pairs AS p USING (reference)
      LEFT JOIN (SELECT DISTINCT o.paid, o.customer FROM own AS o) AS k ON (k.paid, k.customer) = (l.paid, l.customer)
  ), taken AS MATERIALIZED (
    SELECT b.*, coalesce(g.minor, 0) AS back_minor, r.reference IS NOT NULL AS is_returned,
           count(*) FILTER (WHERE b.is_there AND b.is_ours AND r.reference IS NULL) OVER (PARTITION BY b.paid) > 1 AS is_again
      FROM both_sides AS b
      LEFT JOIN returned AS r USING (reference)
      LEFT JOIN (SELECT of_reference AS reference, sum(there_minor)::bigint AS minor FROM listed WHERE kind = 'refund' AND is_there GROUP BY of_reference) AS g
                USING (reference)
     WHERE b.kind = 'payment'
  ), ours AS ( -- the payments that money may go back from
    SELECT reference FROM taken WHERE is_ours
     UNION
    SELECT p.reference FROM payments AS p WHERE p.kind <> 'refund' AND p.reference IN (SELECT of_reference FROM listed)
  ), judged AS (
    SELECT CASE WHEN here = 'captured' THEN CASE WHEN is_equal THEN 'matched' ELSE 'differs' END
                WHEN is_open AND NOT (is_there AND is_again) THEN 'open'
                WHEN NOT is_there THEN NULL
                WHEN NOT is_ours THEN 'foreign'
                WHEN is_returned THEN CASE WHEN back_minor >= there_minor THEN 'returned' ELSE 'refund_one_sided' END
                WHEN is_again THEN 'duplicate'
                ELSE 'orphan' END AS class,
           kind, paid, attempt_no, reference, here, there, currency, here_minor, there_minor, greatest(there_minor - back_minor, 0) AS left_minor
      FROM taken
     UNION ALL
    SELECT CASE WHEN b.here = 'captured' THEN CASE WHEN b.is_equal THEN 'matched' ELSE 'differs' END
                WHEN b.is_open THEN 'open'
                WHEN NOT b.is_there OR r.reference IS NOT NULL THEN NULL -- of an orphan: its payment says it
                WHEN b.payment_id IS NOT NULL OR o.reference IS NOT NULL THEN 'refund_one_sided'
                ELSE 'foreign' END,
           b.kind, b.paid, b.attempt_no, b.reference, b.here, b.there, b.currency, b.here_minor, b.there_minor, NULL
      FROM both_sides AS b LEFT JOIN returned AS r ON r.reference = b.of_reference LEFT JOIN ours AS o ON o.reference = b.of_reference
     WHERE b.kind = 'refund'
     UNION ALL
    SELECT CASE WHEN is_open OR asked_at >= p_asked_before THEN 'open' WHEN kind = 'refund' THEN 'refund_one_sided' ELSE 'here_only' END,
           kind, paid, attempt_no, o.reference, here, NULL, currency, here_minor, NULL, NULL
      FROM own AS o
     WHERE (is_open OR (here = 'captured' AND first_sent_at >= p_since)) AND NOT EXISTS (SELECT FROM pairs AS p WHERE p.payment_id = o.payment_id)
  )
  SELECT class, kind, paid, attempt_no, reference, here, there, currency, CASE WHEN here NOT IN ('declined', 'void') THEN here_minor END, there_minor,
         CASE WHEN class IN ('orphan', 'duplicate', 'refund_one_sided') AND (here IN ('declined', 'void')) IS NOT FALSE THEN left_minor END
    FROM judged WHERE class IS NOT NULL
$$;
COMMENT ON FUNCTION reconcile IS 'What the gateway lists and what payments has, entry by entry, each with its class. Errors: none of its own.';
REVOKE ALL ON FUNCTION reconcile FROM PUBLIC;
GRANT EXECUTE ON FUNCTION reconcile TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;

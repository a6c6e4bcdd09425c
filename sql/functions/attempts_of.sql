-- attempts_of(kind, source): the attempts to ask a card for a period or an order, or to give it back, in the order in which they were
-- planned, for life_of_subscription and life_of_order.
CREATE OR REPLACE FUNCTION attempts_of(p_kind text, p_source bigint)
RETURNS TABLE (at timestamptz, payment_id bigint, detail text, amount_minor bigint, token bigint, worker text)
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
  SELECT p.recorded_at, p.payment_id,
         format('%s, attempt %s: %s after %s calls%s', CASE p.kind WHEN 'charge' THEN 'period ' || p.leg WHEN 'payment' THEN 'order ' || p.source ELSE 'refund ' || p.source END,
                p.attempt_no, p.state, p.calls, coalesce(', ' || p.reference, '') || coalesce(', ' || p.reason, '')),
         p.amount_minor, nullif(p.fence, 0), p.worker
    FROM payments AS p
   WHERE (p.source, p.kind) = (p_source, p_kind)
      OR (p.kind = 'refund' AND p.source IN (SELECT w.entry_id FROM payments AS q JOIN wallet_entries AS w ON (w.of_kind, w.of_source) = ('card', q.payment_id)
                                              WHERE (q.source, q.kind) = (p_source, p_kind)))
$$;
COMMENT ON FUNCTION attempts_of IS 'The attempts to ask a card for something, or to give it back. Errors: none of its own.';
REVOKE ALL ON FUNCTION attempts_of FROM PUBLIC;
GRANT EXECUTE ON FUNCTION attempts_of TO ledgerlock_worker, ledgerlock_support, ledgerlock_reader;

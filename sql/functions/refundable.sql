-- refundable(entry): how many minor units of it can be given back: its amount less earlier corrections, and, for a charge or a
-- proration, not more than is still paid for the period.
CREATE OR REPLACE FUNCTION refundable(p_of ledger)
RETURNS numeric LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
  SELECT least((p_of).amount_minor - coalesce((SELECT sum(amount_minor) FROM corrections
                                                WHERE (of_kind, of_source, of_leg) = ((p_of).kind, (p_of).source, (p_of).leg)), 0),
               CASE (p_of).kind
                 WHEN 'charge' THEN paid_for_period((p_of).source, (p_of).leg, (p_of).source_at)
                 WHEN 'proration' THEN (SELECT paid_for_period(s.subscription_id, p.period_no,
                                                               period_start(s.anchor_at, s.unit, s.every, p.period_no))
                                          FROM prorations AS p JOIN subscriptions AS s USING (subscription_id)
                                         WHERE p.proration_id = (p_of).source) END)
$$;
COMMENT ON FUNCTION refundable IS 'How much of an entry of ledger can still be given back, in minor units.';
REVOKE ALL ON FUNCTION refundable FROM PUBLIC;

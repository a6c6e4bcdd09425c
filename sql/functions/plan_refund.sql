-- plan_refund(entry, attempt): writes this attempt to give back to a card what an entry of wallet_entries (of_kind card) says, for
-- give_back, and for settle_payments where the gateway has nothing of the attempt before. The row of the user is locked.
CREATE OR REPLACE FUNCTION plan_refund(p_entry_id bigint, p_attempt_no integer)
RETURNS void LANGUAGE sql SET search_path FROM CURRENT AS $$
  INSERT INTO payments (kind, source, leg, attempt_no, user_id, source_at, amount_minor, currency, customer, method, due_at,
                        planned_fence, fence, worker, at)
  SELECT 'refund', p_entry_id, 0, p_attempt_no, w.user_id, w.at, w.amount_minor, p.currency, p.customer, p.method, now(), 0, 0, w.worker, w.at
    FROM wallet_entries AS w JOIN payments AS p ON p.payment_id = w.of_source
   WHERE w.entry_id = p_entry_id AND w.kind <> 'deposit' AND w.of_kind = 'card'
$$;
COMMENT ON FUNCTION plan_refund IS 'Writes an attempt to give an entry of wallet_entries back to a card.';
REVOKE ALL ON FUNCTION plan_refund FROM PUBLIC;

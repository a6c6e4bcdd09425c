-- is_hard_decline(reason): true if no later try with this card can succeed, by Stripe's decline codes (its page on smart retries names
-- those that it does not try again; card networks fine shops that do).
CREATE OR REPLACE FUNCTION is_hard_decline(p_reason text)
RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(p_reason IN ('authentication_required', 'do_not_try_again', 'fraudulent', 'highest_risk_level', 'incorrect_number', 'lost_card',
                             'pickup_card', 'revocation_of_all_authorizations', 'revocation_of_authorization', 'stolen_card', 'stop_payment_order',
                             'transaction_not_allowed'), false);
COMMENT ON FUNCTION is_hard_decline IS 'True if no later try with this card can succeed.';
REVOKE ALL ON FUNCTION is_hard_decline FROM PUBLIC;

-- text_hash(form, paid, attempt, amount, currency, customer, method): names the text of the request for an attempt, by all values of the
-- attempt that stand in it, and by what the program makes of a sample (form), so that another form gives another hash.
CREATE OR REPLACE FUNCTION text_hash(
  p_form text, p_paid text, p_attempt_no integer, p_amount_minor bigint, p_currency text, p_customer text, p_method text)
RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE
RETURN substr(sha256(convert_to(concat_ws('|', p_form, p_paid, p_attempt_no, p_amount_minor, p_currency, p_customer, p_method), 'UTF8')), 1, 8);
COMMENT ON FUNCTION text_hash IS 'Names the text of the request for an attempt.';
REVOKE ALL ON FUNCTION text_hash FROM PUBLIC;

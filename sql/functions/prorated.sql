-- prorated(old, new, days left, days): (new - old) x days left / days, to the nearest whole number; from the middle the lower
-- one, so the customer pays less or gets more back. In whole numbers, which are exact for any amount.
CREATE OR REPLACE FUNCTION prorated(p_old bigint, p_new bigint, p_left bigint, p_days bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT div(n, 2 * p_days) + (mod(n, 2 * p_days) > 0)::int
          FROM (SELECT 2 * (p_new::numeric - p_old) * p_left - p_days) AS doubled (n));
COMMENT ON FUNCTION prorated IS
  'What the rest of a period costs more at a new amount: days left of its days, half a minor unit in favour of the customer.';
REVOKE ALL ON FUNCTION prorated FROM PUBLIC;
GRANT EXECUTE ON FUNCTION prorated TO ledgerlock_support, ledgerlock_reader, ledgerlock_worker;

-- The numbers, tables and draw that rows are made up from. Row n of each kind depends only on the numbers in seed_of, so the same
-- numbers give the same rows, in any parts, any number of times. Locks: none. The tables are gone at the end of the transaction;
-- seed_drop takes the function away, since the session may be that of a pooler.
-- draw: a number from 0, below the last argument, for row n; p_what is the number of the choice that is made.
DO $$
BEGIN
  PERFORM set_config('citus.enable_ddl_propagation', 'off', true); -- a node makes objects of this session for itself
  CREATE TEMPORARY TABLE seed_of (
    base bigint, seed bigint, at timestamptz, users bigint, subscriptions bigint, skus bigint, orders bigint, currency text,
    cards bigint) ON COMMIT DROP;
  CREATE TEMPORARY TABLE seed_subscriptions (
    subscription_id bigint PRIMARY KEY, user_id bigint, plan text, amount_minor bigint, unit text, anchor_at timestamptz,
    cancel_at timestamptz, begun bigint) ON COMMIT DROP;
  CREATE TEMPORARY TABLE seed_lines (order_id bigint, user_id bigint, sku_id bigint, qty bigint, PRIMARY KEY (order_id, sku_id)) ON COMMIT DROP;
  CREATE TEMPORARY TABLE seed_users (user_id bigint PRIMARY KEY, deposit_minor bigint NOT NULL) ON COMMIT DROP;
  CREATE OR REPLACE FUNCTION pg_temp.draw(p_seed bigint, p_n bigint, p_what bigint, p_below bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
  RETURN (hashint8extended(p_n, hashint8extended(p_what, p_seed)) & 9223372036854775807) % p_below;
END $$

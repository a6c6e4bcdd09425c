-- History: batches, events, incidents, entries and what was decided take new rows, and no change of an old one, of their owner either.
\set shop 'SELECT t.user(1, 1000), t.sku(1, ''A'', 10, 250), t.subscription(1, 1, 100, ''2024-01-31Z''), t.order(1, ''A1'', ''served'', now()), t.order(1, ''A9'', ''short'', now()); SELECT t.bill(''2024-02-01Z''), t.serve(), t.order(1, ''A1'', ''back'', now()), withdraw(1, ''USD'', 1, ''test'', ''k''), receive_stock(''A'', ''k'', 1), adjust_stock(''A'', 1, ''test'', ''k''), set_terms(1, 1, 3, ''p'', 1, 100), log_incident(''user:1'', 1, ''w'', ''lost'', ''apply'', NULL, '''', 0); SELECT cancel_order(1, 3);'
SELECT no_plan();

-- Guarantee: Not even the owner changes, deletes or empties what is history, unless he says in his session that he repairs.
BEGIN; SELECT t.test('owner_changes_no_row_of_history');
:shop
CREATE TEMP VIEW statements AS
  SELECT name, format(template, name, (SELECT quote_ident(attname) FROM pg_attribute
                        WHERE attrelid = name::regclass AND attnum > 0 AND attidentity = '' AND attgenerated = '' ORDER BY attnum LIMIT 1)) AS statement
    FROM unnest('{subscription_terms,batches,lock_incidents,wallet_entries,stock_entries,order_lines}'::text[]) AS name, unnest(ARRAY['UPDATE %1$s SET %2$s = %2$s', 'DELETE FROM %1$s', 'TRUNCATE %1$s CASCADE']) AS template;
SELECT t.would('23001', statement, NULL, 'ledgerlock_owner') FROM statements;
SET LOCAL ledgerlock.repair = on;
SELECT t.would(NULL, statement, 'to repair: ' || statement, 'ledgerlock_owner') FROM statements;
ROLLBACK;

-- Guarantee: Not even the owner changes an order that is decided or cancelled, unless he says in his session that he repairs.
BEGIN; SELECT t.test('owner_changes_no_decided_order');
:shop
SELECT t.would('23001', 'UPDATE orders SET ' || change, NULL, 'ledgerlock_owner') FROM unnest(ARRAY[
  $$state = 'pending', decided_at = NULL WHERE state = 'fulfilled'$$, $$state = 'fulfilled', reason = NULL, skus = NULL WHERE state = 'rejected'$$,
  $$reason = 'unknown_sku', skus = '{X}' WHERE state = 'rejected'$$, $$state = 'pending' WHERE state = 'cancelled'$$]) AS change;
ROLLBACK;

-- Guarantee: No role but the owner has a right to change, delete or empty any table.
BEGIN; SELECT t.test('no_role_has_a_right_to_write_a_table');
SELECT is(array_agg(concat_ws(' ', a.grantee::regrole, privilege_type, relname)), NULL, 'of no table')
  FROM pg_class AS c, aclexplode(relacl) AS a WHERE relnamespace = 'ledgerlock'::regnamespace AND a.grantee <> relowner AND privilege_type <> 'SELECT';
SELECT is(array_agg(concat_ws(' ', a.grantee::regrole, privilege_type, relname, attname)), NULL, 'of no column')
  FROM pg_attribute JOIN pg_class AS c ON c.oid = attrelid, aclexplode(attacl) AS a WHERE relnamespace = 'ledgerlock'::regnamespace AND a.grantee <> relowner;
ROLLBACK;

SELECT t.done(42);

-- Makes this schema a cell of the Citus cluster whose coordinator this is, unless it is one: Citus chooses the node. Before that, the
-- trigger of new subscriptions gets its form for each row. Functions read tables within queries: all of a cell are on one node, and every
-- session of this database may. Locks: ACCESS EXCLUSIVE on all tables.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_dist_schema WHERE schemaid = current_schema()::regnamespace) THEN
    RETURN;
  END IF;
  PERFORM set_config('citus.enable_unsafe_triggers', 'on', true);
  DROP TRIGGER keep_subscriptions ON subscriptions;
  CREATE TRIGGER keep_subscriptions AFTER INSERT ON subscriptions FOR EACH ROW EXECUTE FUNCTION keep_subscriptions();
  EXECUTE format('ALTER DATABASE %I SET citus.allow_nested_distributed_execution = on', current_database());
  PERFORM citus_schema_distribute(current_schema()::regnamespace);
END $$

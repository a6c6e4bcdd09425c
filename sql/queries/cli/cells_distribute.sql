-- Makes this schema a cell of the Citus cluster whose coordinator this is, unless it is one: Citus chooses the node. Before that, the
-- trigger of new subscriptions gets its form for each row. Functions read tables within queries: all of a cell are on one node, and every
-- session of this database may, unless it is so already. Locks: ACCESS EXCLUSIVE on all tables.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_dist_schema WHERE schemaid = current_schema()::regnamespace) THEN
    RETURN;
  END IF;
  PERFORM set_config('citus.enable_unsafe_triggers', 'on', true);
  DROP TRIGGER keep_subscriptions ON subscriptions;
  CREATE TRIGGER keep_subscriptions AFTER INSERT ON subscriptions FOR EACH ROW EXECUTE FUNCTION keep_subscriptions();
  IF NOT current_setting('citus.allow_nested_distributed_execution')::boolean THEN
    BEGIN
      EXECUTE format('ALTER DATABASE %I SET citus.allow_nested_distributed_execution = on', current_database());
    EXCEPTION WHEN insufficient_privilege THEN
      RAISE insufficient_privilege USING MESSAGE = format('the owner of the database or a superuser has to type once: '
        'ALTER DATABASE %I SET citus.allow_nested_distributed_execution = on', current_database());
    END;
  END IF;
  PERFORM citus_schema_distribute(current_schema()::regnamespace);
END $$

-- 002: roles. The owner is whoever migrates. A worker can neither delete, truncate nor change the schema.
-- Roles belong to the whole server: they may exist already, made by an administrator or for another database.
DO $$
DECLARE
  role_name text;
BEGIN
  FOREACH role_name IN ARRAY ARRAY['ledgerlock_worker', 'ledgerlock_client'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role_name) THEN
      BEGIN
        EXECUTE format('CREATE ROLE %I NOLOGIN', role_name);
      EXCEPTION
        WHEN duplicate_object OR unique_violation THEN NULL; -- made by another migration a moment ago
        WHEN insufficient_privilege THEN
          RAISE EXCEPTION 'role "%" does not exist and this user may not create it', role_name
            USING HINT = format('Let an administrator run: CREATE ROLE %I LOGIN', role_name);
      END;
    END IF;
  END LOOP;
END $$;

REVOKE ALL ON SCHEMA ledgerlock FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ledgerlock FROM PUBLIC;
GRANT USAGE ON SCHEMA ledgerlock TO ledgerlock_worker, ledgerlock_client;

GRANT SELECT ON ALL TABLES IN SCHEMA ledgerlock TO ledgerlock_worker;
GRANT UPDATE (balance_minor, fence) ON ledgerlock.users TO ledgerlock_worker;
GRANT UPDATE (state, next_period_no, next_due_at, retries) ON ledgerlock.subscriptions TO ledgerlock_worker;
GRANT INSERT, UPDATE (state, tries, fence, worker, charged_at) ON ledgerlock.charges TO ledgerlock_worker;
GRANT UPDATE (on_hand, fence) ON ledgerlock.stock TO ledgerlock_worker;
GRANT UPDATE (state, reason, skus, decided_at, fence) ON ledgerlock.orders TO ledgerlock_worker;
GRANT INSERT ON ledgerlock.stock_movements, ledgerlock.transfers, ledgerlock.lock_incidents TO ledgerlock_worker;
GRANT UPDATE (epoch) ON ledgerlock.lock_epoch TO ledgerlock_worker;
GRANT INSERT, UPDATE ON ledgerlock.workers TO ledgerlock_worker;
GRANT EXECUTE ON FUNCTION ledgerlock.period_start TO ledgerlock_worker;
GRANT USAGE ON SEQUENCE ledgerlock.lock_tokens TO ledgerlock_worker;

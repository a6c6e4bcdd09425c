/* roles: what ledgerlock_worker and ledgerlock_client may not do, tried on every table.
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/fixture.h"

static struct fixture f;

static int open_all(void **state)
{
    (void)state;
    fixture_open_migrated(&f);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    fixture_close(&f);
    return 0;
}

static void assert_denied(const char *role, const char *sql)
{
    char url[FIXTURE_URL];
    char code[6];

    fixture_url_as(&f, role, url, sizeof url);
    if (strcmp(fixture_sqlstate(url, sql, code), "42501") != 0)
        fail_msg("%s: %s: expected 42501, got %s", role, sql, code);
}

static void assert_allowed(const char *role, const char *sql)
{
    char url[FIXTURE_URL];
    char code[6];

    fixture_url_as(&f, role, url, sizeof url);
    if (strcmp(fixture_sqlstate(url, sql, code), "00000") != 0)
        fail_msg("%s: %s: got %s", role, sql, code);
}

/* Tries every statement that a query, run as the owner, makes of the catalogue. */
static void assert_all_denied(const char *role, const char *make_statements)
{
    PGconn *conn = PQconnectdb(f.url);
    PGresult *res = PQexec(conn, make_statements);

    assert_int_equal(PQresultStatus(res), PGRES_TUPLES_OK);
    assert_true(PQntuples(res) > 0);
    for (int row = 0; row < PQntuples(res); row++)
        assert_denied(role, PQgetvalue(res, row, 0));
    PQclear(res);
    PQfinish(conn);
}

#define EACH_TABLE(template)                                                           \
    "SELECT format('" template "', c.oid::regclass) FROM pg_class AS c "               \
                               "WHERE c.relnamespace = 'ledgerlock'::regnamespace AND c.relkind = 'r'"

static const char *const destructive[] = {
    EACH_TABLE("DELETE FROM %s"),
    EACH_TABLE("TRUNCATE %s"),
    EACH_TABLE("DROP TABLE %s"),
    EACH_TABLE("ALTER TABLE %s ADD COLUMN x int"),
    EACH_TABLE("ALTER TABLE %s DISABLE TRIGGER ALL"),
    EACH_TABLE("CREATE INDEX ON %s ((1))"),
};

static void worker_cannot_delete_or_change_any_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof destructive / sizeof destructive[0]; i++)
        assert_all_denied("ledgerlock_worker", destructive[i]);
}

static void client_cannot_delete_or_change_any_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof destructive / sizeof destructive[0]; i++)
        assert_all_denied("ledgerlock_client", destructive[i]);
}

static void worker_cannot_update_columns_that_are_not_its_own(void **state)
{
    (void)state;
    assert_all_denied(
        "ledgerlock_worker",
        "SELECT format('UPDATE %s SET %I = DEFAULT', a.attrelid::regclass, a.attname) "
        "FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid "
        "WHERE c.relnamespace = 'ledgerlock'::regnamespace AND c.relkind = 'r' "
        "AND a.attnum > 0 AND NOT a.attisdropped AND NOT (c.relname, a.attname) IN (VALUES "
        "('users', 'balance_minor'), ('users', 'fence'), ('subscriptions', 'state'), "
        "('subscriptions', 'next_period_no'), ('subscriptions', 'next_due_at'), "
        "('subscriptions', 'retries'), ('charges', 'state'), ('charges', 'tries'), "
        "('charges', 'fence'), ('charges', 'worker'), ('charges', 'charged_at'), "
        "('stock', 'on_hand'), ('stock', 'fence'), ('orders', 'state'), "
        "('orders', 'reason'), ('orders', 'skus'), ('orders', 'decided_at'), "
        "('orders', 'fence'), ('lock_epoch', 'epoch'), ('lock_epoch', 'raiser'), "
        "('lock_epoch', 'raiser_until')) AND c.relname <> 'workers'");
}

static void worker_cannot_make_objects_or_users(void **state)
{
    (void)state;
    assert_denied("ledgerlock_worker", "CREATE TABLE ledgerlock.x (a int)");
    assert_denied("ledgerlock_worker", "CREATE SCHEMA other");
    assert_denied("ledgerlock_worker", "CREATE ROLE other");
    assert_denied("ledgerlock_worker", "DROP SCHEMA ledgerlock CASCADE");
    assert_denied("ledgerlock_worker", "CREATE FUNCTION ledgerlock.x() RETURNS int "
                                       "LANGUAGE sql RETURN 1");
    assert_denied("ledgerlock_worker", "SET ROLE ledgerlock_owner");
}

static void worker_cannot_insert_users_stock_or_orders(void **state)
{
    (void)state;
    assert_denied("ledgerlock_worker", "INSERT INTO ledgerlock.users DEFAULT VALUES");
    assert_denied("ledgerlock_worker", "INSERT INTO ledgerlock.stock DEFAULT VALUES");
    assert_denied("ledgerlock_worker", "INSERT INTO ledgerlock.orders DEFAULT VALUES");
    assert_denied(
        "ledgerlock_worker",
        "INSERT INTO ledgerlock.schema_migrations VALUES ('function', 'x', 'x')");
}

static void worker_cannot_use_the_clients_doors(void **state)
{
    (void)state;
    assert_denied("ledgerlock_worker", "SELECT ledgerlock.deposit(1, 1, 100)");
    assert_denied("ledgerlock_worker", "SELECT ledgerlock.place_order(1, 'k', '[]')");
    assert_denied("ledgerlock_worker", "SELECT ledgerlock.receive_stock('A', 1, 1)");
}

static void worker_can_do_its_work(void **state)
{
    (void)state;
    assert_allowed("ledgerlock_worker", "SELECT * FROM ledgerlock.schema_migrations");
    assert_allowed("ledgerlock_worker", "SELECT 1 FROM ledgerlock.users FOR UPDATE");
    assert_allowed("ledgerlock_worker", "UPDATE ledgerlock.users SET fence = fence");
    assert_allowed("ledgerlock_worker",
                   "UPDATE ledgerlock.stock SET on_hand = on_hand");
    assert_allowed("ledgerlock_worker",
                   "UPDATE ledgerlock.lock_epoch SET epoch = epoch");
    assert_allowed(
        "ledgerlock_worker",
        "INSERT INTO ledgerlock.lock_incidents (resource, token, worker, kind, "
        "phase) VALUES ('user:1', 1, 'w', 'lost', 'apply')");
}

static void client_cannot_read_or_write_any_table(void **state)
{
    (void)state;
    assert_all_denied("ledgerlock_client", EACH_TABLE("SELECT 1 FROM %s"));
    assert_all_denied("ledgerlock_client", EACH_TABLE("INSERT INTO %s DEFAULT VALUES"));
}

static void client_can_use_only_the_doors(void **state)
{
    char names[512];

    (void)state;
    fixture_query_text(
        f.url,
        "SELECT string_agg(proname, ' ' ORDER BY proname COLLATE \"C\") FROM pg_proc "
        "WHERE pronamespace = 'ledgerlock'::regnamespace "
        "AND has_function_privilege('ledgerlock_client', oid, 'EXECUTE')",
        names, sizeof names);
    assert_string_equal(names, "cancel_subscription deposit order_status place_order "
                               "receive_stock resume_order resume_subscription");
}

static void everybody_else_may_nothing(void **state)
{
    (void)state;
    assert_int_equal(
        fixture_query_int8(
            f.url, "SELECT count(*) FROM pg_proc AS p, aclexplode(coalesce(p.proacl, "
                   "acldefault('f', p.proowner))) AS a WHERE p.pronamespace = "
                   "'ledgerlock'::regnamespace AND a.grantee = 0"),
        0);
    assert_int_equal(fixture_query_int8(f.url,
                                        "SELECT count(*) FROM pg_namespace AS n, "
                                        "aclexplode(n.nspacl) AS a WHERE n.nspname = "
                                        "'ledgerlock' AND a.grantee = 0"),
                     0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker_cannot_delete_or_change_any_table),
        cmocka_unit_test(client_cannot_delete_or_change_any_table),
        cmocka_unit_test(worker_cannot_update_columns_that_are_not_its_own),
        cmocka_unit_test(worker_cannot_make_objects_or_users),
        cmocka_unit_test(worker_cannot_insert_users_stock_or_orders),
        cmocka_unit_test(worker_cannot_use_the_clients_doors),
        cmocka_unit_test(worker_can_do_its_work),
        cmocka_unit_test(client_cannot_read_or_write_any_table),
        cmocka_unit_test(client_can_use_only_the_doors),
        cmocka_unit_test(everybody_else_may_nothing),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, open_all, close_all);
}

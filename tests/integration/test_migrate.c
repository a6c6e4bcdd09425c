/* migrate: from nothing, again, ten at once; what is refused; what a worker may not do.
 */
#include <stdio.h>
#include <string.h>

#include "common/pg.h"
#include "tests/lib/fixture.h"
#include "worker/migrate.h"

static struct fixture f;
static struct fixture_output o;

static int empty(void **state)
{
    (void)state;
    fixture_open(&f);
    return 0;
}

static int migrated(void **state)
{
    (void)state;
    fixture_open_migrated(&f);
    return 0;
}

static int done(void **state)
{
    (void)state;
    fixture_close(&f);
    return 0;
}

static int64_t count_applied(void)
{
    return fixture_query_int8(f.url,
                              "SELECT count(*) FROM ledgerlock.schema_migrations");
}

/* migrate_check on a connection of its own; the message goes to e. */
static int check_as(const char *role, struct err *e)
{
    char url[FIXTURE_URL];
    struct pg_options options = {.url = url, .name = "test", .answer_ms = 10000};
    struct pg *pg;
    int code;

    fixture_url_as(&f, role, url, sizeof url);
    assert_int_equal(pg_open(&pg, &options, e), 0);
    code = migrate_check(pg, e);
    pg_close(pg);
    return code;
}

/* ---- applying ---- */

static void migrate_of_empty_database_applies_everything(void **state)
{
    (void)state;
    assert_int_equal(fixture_run(&f, &o, "migrate", NULL), 0);
    fixture_assert_contains(o.out, "applied migration 001_schema");
    fixture_assert_contains(o.out, "applied function place_order");
    assert_string_equal(o.err, "");
    assert_true(count_applied() >= 7);
}

static void migrate_again_does_nothing(void **state)
{
    char before[64], after[64];
    const char *last = "SELECT max(applied_at)::text FROM ledgerlock.schema_migrations";

    (void)state;
    fixture_query_text(f.url, last, before, sizeof before);
    assert_int_equal(fixture_run(&f, &o, "migrate", NULL), 0);
    fixture_assert_contains(o.out, "schema is up to date (");
    fixture_query_text(f.url, last, after, sizeof after);
    assert_string_equal(before, after);
}

static void migrate_ten_at_once_applies_once(void **state)
{
    struct fixture_child children[10];
    int applied = 0;

    (void)state;
    for (size_t i = 0; i < 10; i++)
        fixture_spawn(&f, &children[i], "migrate", NULL);
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(fixture_wait(&children[i], 60, &o), 0);
        applied += strstr(o.out, "applied migration 001_schema") != NULL;
        if (strstr(o.out, "applied") == NULL)
            fixture_assert_contains(o.out, "schema is up to date");
    }
    assert_int_equal(applied, 1);
}

static void migrate_dry_run_changes_nothing(void **state)
{
    (void)state;
    assert_int_equal(fixture_run(&f, &o, "migrate", "--dry-run", NULL), 0);
    fixture_assert_contains(o.out, "would apply migration 001_schema");
    fixture_assert_contains(o.out, "would apply function deposit");
    assert_int_equal(
        fixture_query_int8(f.url, "SELECT to_regnamespace('ledgerlock') IS NULL"), 1);
}

static void migrate_of_changed_function_replaces_it(void **state)
{
    (void)state;
    fixture_exec(f.url, "UPDATE ledgerlock.schema_migrations SET checksum = 'old' "
                        "WHERE name = 'deposit'; DROP FUNCTION ledgerlock.deposit");
    assert_int_equal(fixture_run(&f, &o, "migrate", NULL), 0);
    fixture_assert_contains(o.out, "applied function deposit");
    assert_null(strstr(o.out, "place_order"));
    assert_int_equal(fixture_query_int8(f.url,
                                        "SELECT to_regproc('ledgerlock.deposit') "
                                        "IS NOT NULL"),
                     1);
}

static void migrate_that_fails_leaves_nothing_of_its_step(void **state)
{
    (void)state;
    fixture_exec(f.url, "CREATE SCHEMA ledgerlock");
    assert_int_equal(fixture_run(&f, &o, "migrate", NULL), 6);
    fixture_assert_contains(o.err, "which ledgerlock did not make");
    assert_int_equal(
        fixture_query_int8(f.url, "SELECT count(*) FROM pg_class WHERE relnamespace = "
                                  "'ledgerlock'::regnamespace"),
        0);
}

static void migrate_as_wrong_role_says_whose_work_it_is(void **state)
{
    (void)state;
    fixture_become(&f, "ledgerlock_client");
    assert_int_equal(fixture_run(&f, &o, "migrate", NULL), 4);
    fixture_assert_contains(o.err, "migrate as the owner of the database");
}

/* ---- refusing ---- */

static void migrate_with_edited_history_is_refused(void **state)
{
    (void)state;
    fixture_exec(f.url,
                 "UPDATE ledgerlock.schema_migrations SET checksum = repeat('0', 64) "
                 "WHERE name = '001_schema'");
    assert_int_equal(fixture_run(&f, &o, "migrate", NULL), 6);
    fixture_assert_contains(o.err,
                            "migration 001_schema was edited after it was applied");
}

static void migrate_of_newer_schema_is_refused(void **state)
{
    (void)state;
    fixture_exec(f.url,
                 "INSERT INTO ledgerlock.schema_migrations (kind, name, checksum) "
                 "VALUES ('migration', '999_future', 'x')");
    assert_int_equal(fixture_run(&f, &o, "migrate", NULL), 6);
    fixture_assert_contains(o.err, "migration 999_future; install the newer one");
}

static void check_without_schema_says_migrate(void **state)
{
    struct err e = {0};

    (void)state;
    assert_int_equal(check_as("ledgerlock_worker", &e), ERR_SCHEMA);
    fixture_assert_contains(e.msg, "no ledgerlock schema; run `ledgerlock migrate`");
}

static void check_as_worker_passes_when_up_to_date(void **state)
{
    struct err e = {0};

    (void)state;
    assert_int_equal(check_as("ledgerlock_worker", &e), 0);
}

static void check_of_older_schema_says_migrate(void **state)
{
    struct err e = {0};

    (void)state;
    fixture_exec(f.url,
                 "DELETE FROM ledgerlock.schema_migrations WHERE name = '002_roles'");
    assert_int_equal(check_as("ledgerlock_worker", &e), ERR_SCHEMA);
    fixture_assert_contains(e.msg, "older than this program (migration 002_roles");
}

static void check_of_newer_schema_says_install(void **state)
{
    struct err e = {0};

    (void)state;
    fixture_exec(f.url,
                 "INSERT INTO ledgerlock.schema_migrations (kind, name, checksum) "
                 "VALUES ('migration', '999_future', 'x')");
    assert_int_equal(check_as("ledgerlock_worker", &e), ERR_SCHEMA);
    fixture_assert_contains(e.msg, "install the newer one");
}

static void check_of_other_function_says_migrate(void **state)
{
    struct err e = {0};

    (void)state;
    fixture_exec(f.url, "UPDATE ledgerlock.schema_migrations SET checksum = 'x' "
                        "WHERE name = 'deposit'");
    assert_int_equal(check_as("ledgerlock_worker", &e), ERR_SCHEMA);
    fixture_assert_contains(e.msg, "function deposit in the database is not the one");
}

#define EMPTY(name) cmocka_unit_test_setup_teardown(name, empty, done)
#define MIGRATED(name) cmocka_unit_test_setup_teardown(name, migrated, done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EMPTY(migrate_of_empty_database_applies_everything),
        MIGRATED(migrate_again_does_nothing),
        EMPTY(migrate_ten_at_once_applies_once),
        EMPTY(migrate_dry_run_changes_nothing),
        MIGRATED(migrate_of_changed_function_replaces_it),
        EMPTY(migrate_that_fails_leaves_nothing_of_its_step),
        EMPTY(migrate_as_wrong_role_says_whose_work_it_is),
        MIGRATED(migrate_with_edited_history_is_refused),
        MIGRATED(migrate_of_newer_schema_is_refused),
        EMPTY(check_without_schema_says_migrate),
        MIGRATED(check_as_worker_passes_when_up_to_date),
        MIGRATED(check_of_older_schema_says_migrate),
        MIGRATED(check_of_newer_schema_says_install),
        MIGRATED(check_of_other_function_says_migrate),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

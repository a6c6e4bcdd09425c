/* migrate: from nothing, again, ten at once; what is refused. */
#include "common/pg/pg.h"
#include "ops/cli/migrate.h"
#include "tests/lib/runs.h"
#include "tests/lib/world.h"

static void empty(void)
{
    fixture_open(&world.f);
}

WORLD(.role = "ledgerlock_owner");

/* migrate_check as the worker, on a connection of its own. */
static void check(int code, const char *message)
{
    char url[FIXTURE_URL];
    struct pg_options options = {
        .url = url, .name = "test", .schema = "ledgerlock", .answer_ms = 10000};
    struct err e = {0};
    struct pg *pg;

    fixture_url_as(&world.f, "ledgerlock_worker", url, sizeof url);
    assert_int_equal(pg_open(&pg, &options, &e), 0);
    assert_int_equal(migrate_check(pg, &e), code);
    fixture_assert_contains(e.msg, message);
    pg_close(pg);
}

/* ---- applying ---- */

/* Guarantee: `migrate` says what it applied in one line, and with --verbose in one line
 * for each migration and function. */
CASE(migrate_of_empty_database_applies_everything_and_says_so_in_one_line,
     .open = empty)
{
    says(&world.f, 0, " functions; made ", "migrate");
    assert_ptr_equal(strchr(said.out, '\n'), said.out + strlen(said.out) - 1);
    said_no_complaint();
    holds(&world.f, 1, "SELECT (count(*) >= 7)::int FROM schema_migrations");
}

CASE(migrate_verbose_names_everything, .open = empty)
{
    says(&world.f, 0, "applied migration 001_schema", "migrate --verbose");
    shows("applied function place_order");
    shows(" functions; made ");
}

CASE(migrate_again_does_nothing)
{
    static const char last[] = "SELECT max(applied_at)::text FROM schema_migrations";
    char before[64];

    (void)snprintf(before, sizeof before, "%s", world_text("%s", last));
    says(&world.f, 0, "schema is up to date (", "migrate");
    world_expect(before, last);
}

/* Guarantee: Ten `migrate` at once apply each step once. */
CASE(migrate_ten_at_once_applies_once, .open = empty)
{
    struct fixture_child children[10];
    int applied = 0;

    for (size_t i = 0; i < 10; i++)
        fixture_spawn(&world.f, &children[i], "migrate", "--verbose", NULL);
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(fixture_wait(&children[i], 120, &said), 0);
        applied += strstr(said.out, "applied migration 001_schema") != NULL;
        if (strstr(said.out, "applied") == NULL)
            shows("schema is up to date");
    }
    assert_int_equal(applied, 1);
}

CASE(migrate_dry_run_changes_nothing, .open = empty)
{
    says(&world.f, 0, "would apply migration 001_schema", "migrate --dry-run");
    shows("would apply function deposit");
    holds(&world.f, 1, "SELECT to_regnamespace('ledgerlock') IS NULL");
}

CASE(migrate_of_changed_function_replaces_it)
{
    world_do("UPDATE schema_migrations SET checksum = 'old' WHERE name = 'deposit'; "
             "DROP FUNCTION deposit");
    says(&world.f, 0, "applied function deposit", "migrate --verbose");
    assert_null(strstr(said.out, "place_order"));
    holds(&world.f, 1, "SELECT to_regproc('deposit') IS NOT NULL");
}

/* Guarantee: The numbers of rows of databases with cells of their own never meet. */
CASE(numbers_begin_at_those_of_the_cell, .open = empty)
{
    static const int64_t start = (INT64_C(5) << 40) + 1;

    runs(&world.f, 0, "migrate --cell 5");
    holds(&world.f, start, "SELECT create_user('k', 'USD')");
    holds(&world.f, 0,
          "SELECT count(*) FROM pg_sequences WHERE schemaname ="
          " 'ledgerlock' AND start_value <> (5::bigint << 40) + 1");
    runs(&world.f, 0, "migrate --cell 5");
    says(&world.f, 6, "Give the cell to the first migrate", "migrate --cell 6");
    says(&world.f, 2, "--cell", "migrate --cell 8192");
}

CASE(numbers_of_the_cell_begin_behind_a_seed, .open = empty)
{
    static const int64_t start = (INT64_C(5) << 40) + 1;

    runs(&world.f, 0, "migrate --cell 5");
    runs(&world.f, 0, "seed --users 3 --orders 2");
    holds(&world.f, start + 3, "SELECT create_user('l', 'USD')");
}

CASE(migrate_that_fails_leaves_nothing_of_its_step, .open = empty)
{
    fixture_exec(world.f.url, "CREATE SCHEMA ledgerlock");
    says(&world.f, 6, "LL-3113", "migrate");
    holds(
        &world.f, 0,
        "SELECT count(*) FROM pg_class WHERE relnamespace = 'ledgerlock'::regnamespace");
}

CASE(migrate_as_wrong_role_says_whose_work_it_is, .open = empty)
{
    fixture_become(&world.f, "ledgerlock_test_client");
    says(&world.f, 4, "migrate as the owner of the database", "migrate");
}

/* ---- default privileges ---- */

/* clang-format off */
static const struct {
    const char *name, *rights, *says;
} defaults[] = {
    {"no_function_to_public", "REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC",           "applied "},
    {"tables_to_another",     "GRANT SELECT ON TABLES TO pg_monitor",              "applied "},
    {"tables_to_public",      "GRANT ALL ON TABLES TO PUBLIC",                     "took away what default privileges gave"},
    {"tables_to_a_worker",    "GRANT ALL ON TABLES TO ledgerlock_worker",          "took away what default privileges gave"},
    {"functions_to_a_worker", "GRANT EXECUTE ON FUNCTIONS TO ledgerlock_worker",   "took away what default privileges gave"},
};

/* clang-format on */

/* Guarantee: `migrate` of an empty database gives our roles and PUBLIC their rights and
 * no others, whatever the default privileges of the role that migrates are. */
CASE_ROWS(default_privileges_change_no_right, defaults, .open = empty)
{
    char sql[128];

    (void)snprintf(sql, sizeof sql, "ALTER DEFAULT PRIVILEGES %s", row->rights);
    fixture_exec(world.f.url, sql);
    says(&world.f, 0, row->says, "migrate");
    says(&world.f, 0, "schema is up to date", "migrate");
    assert_null(strstr(said.out, "gave"));
    runs(&world.f, 0, "audit");
    fixture_become(&world.f, "ledgerlock_worker");
    runs(&world.f, 0, "run --once -w 1");
}

/* Any other right on a new object is a mistake of the texts, which no test
 * would see if `migrate` mended it; here it is a trigger. */
CASE(right_that_no_default_privilege_gave_is_named_by_the_first_migrate, .open = empty)
{
    char url[FIXTURE_URL];

    fixture_url_as(&world.f, "postgres", url, sizeof url);
    fixture_exec(
        url,
        "CREATE FUNCTION public.give() RETURNS event_trigger LANGUAGE plpgsql AS $$"
        "BEGIN IF to_regclass('ledgerlock.stock') IS NOT NULL THEN GRANT DELETE ON"
        " ledgerlock.stock TO ledgerlock_worker; END IF; END$$; CREATE EVENT TRIGGER"
        " give ON ddl_command_end WHEN TAG IN ('CREATE FUNCTION') EXECUTE FUNCTION"
        " public.give()");
    says(&world.f, 6, "grant ON stock TO ledgerlock_worker: it is now: DELETE, SELECT",
         "migrate");
}

/* ---- the database ---- */

/* clang-format off */
static const struct {
    const char *name, *options, *says;
} databases[] = {
    {"latin1",    "TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'",    "LL-3109"},
    {"sql_ascii", "TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'", "the encoding of database"},
    {"template",  "IS_TEMPLATE true",                                                    "LL-3110"},
    {"read_only", "",                                                                    "LL-3112"},
};

/* clang-format on */

__attribute__((format(printf, 1, 2))) static void as_superuser(const char *fmt, ...)
{
    char sql[512];
    va_list ap;

    va_start(ap, fmt);
    assert_in_range(vsnprintf(sql, sizeof sql, fmt, ap), 0, sizeof sql - 1);
    va_end(ap);
    fixture_exec(getenv("LL_TEST_PG"), sql);
}

/* Guarantee: `migrate` refuses a database in another encoding than UTF8, a template and
 * one that is read-only, and says what to do. */
CASE_ROWS(database_is_refused_that_is, databases, .open = empty)
{
    const char *name = world.f.database;
    bool is_read_only = strcmp(row->name, "read_only") == 0;

    as_superuser("DROP DATABASE %s", name);
    as_superuser("CREATE DATABASE %s OWNER ledgerlock_owner %s", name, row->options);
    as_superuser("ALTER DATABASE %s SET default_transaction_read_only = %s", name,
                 is_read_only ? "on" : "off");
    says(&world.f, 6, row->says, "migrate");
    says(&world.f, 6, row->says, "migrate --dry-run");
    as_superuser("ALTER DATABASE %s IS_TEMPLATE false", name);
}

/* ---- refusing ---- */

CASE(check_as_worker_passes_when_up_to_date)
{
    check(0, "");
}

/* clang-format off */
static const struct {
    const char *name, *sql;
    const char *migrate, *check; /* what they say; NULL: not asked */
} changes[] = {
    {"edited_history", "UPDATE schema_migrations SET checksum = repeat('0', 64) WHERE name = '001_schema'",
     "migration 001_schema was edited after it was applied", NULL},
    {"newer_schema", "INSERT INTO schema_migrations (kind, name, checksum) VALUES ('migration', '999_future', 'x')",
     "migration 999_future; install the newer one", "install the newer one"},
    {"newer_function", "INSERT INTO schema_migrations (kind, name, checksum) VALUES ('function', 'redeem', 'x')",
     "function redeem; install the newer one", "install the newer one"},
    {"older_schema", "DELETE FROM schema_migrations WHERE name = '002_roles'",
     NULL, "older than this program (migration 002_roles"},
    {"other_function", "UPDATE schema_migrations SET checksum = 'x' WHERE name = 'deposit'",
     NULL, "function deposit in the database is not the one"},
};

/* clang-format on */

CASE_ROWS(refuses, changes)
{
    world_do("%s", row->sql);
    if (row->migrate != NULL)
        says(&world.f, 6, row->migrate, "migrate");
    if (row->check != NULL)
        check(ERR_SCHEMA, row->check);
}

/* ---- versions ---- */

/* Guarantee: A program works with a schema that a newer one expanded, and leaves it as
 * it is. */
CASE(expanded_schema_is_worked_with)
{
    world_do("INSERT INTO schema_migrations (kind, name, checksum) VALUES "
             "('migration', '003_expand_refunds', 'x'), ('function', 'redeem', 'x'); "
             "UPDATE schema_migrations SET checksum = 'x' WHERE name = 'deposit'; "
             "ALTER TABLE charges ADD COLUMN refunded bigint");
    says(&world.f, 0, "newer than this program", "migrate");
    holds(
        &world.f, 1,
        "SELECT count(*) FROM schema_migrations WHERE name = 'deposit' AND checksum = "
        "'x'");
    check(0, "");
    fixture_become(&world.f, "ledgerlock_worker");
    runs(&world.f, 0, "run --once -w 1");
    runs(&world.f, 0, "audit --lag 0s");
}

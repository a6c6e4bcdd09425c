/* styles: a database or a role whose sessions print and read text otherwise, as another
 * application of it wants: nothing of ours depends on it, in sessions of the program or
 * in functions that a client calls in its own. */
#include "tests/lib/private_pg.h"
#include "tests/lib/session.h"
#include "tests/lib/steps.h"

/* clang-format off */
static const char *const styles[] = {
    "DateStyle = 'SQL, DMY'", "IntervalStyle = 'iso_8601'", "timezone = 'Asia/Kolkata'", "extra_float_digits = -15",
    "bytea_output = 'escape'", "quote_all_identifiers = on", "standard_conforming_strings = off", "escape_string_warning = off",
    "transform_null_equals = on", "array_nulls = off", "xmloption = 'document'", "xmlbinary = 'hex'",
    "default_transaction_isolation = 'serializable'", "row_security = off", "check_function_bodies = off",
    "plpgsql.extra_errors = 'all'", "lc_monetary = 'C'", "lc_numeric = 'POSIX'", "lc_time = 'POSIX'",
};
/* A role of the same database says otherwise again. */
static const char *const styles_of_role[] = {
    "DateStyle = 'German'", "IntervalStyle = 'sql_standard'", "timezone = 'America/Sao_Paulo'",
};

/* clang-format on */

static void set_all(const char *whose, const char *const *settings, size_t n)
{
    for (size_t i = 0; i < n; i++)
        super_do("ALTER %s %s SET %s", whose, world.f.database, settings[i]);
}

#define SET_ALL(whose, settings)                                                       \
    set_all(whose, settings, sizeof(settings) / sizeof(settings)[0])

static void be_otherwise(void)
{
    SET_ALL("DATABASE", styles);
    SET_ALL("ROLE ledgerlock_worker IN DATABASE", styles_of_role);
}

WORLD(.batch = 10, .also = be_otherwise);

/* ---- the program ---- */

static void as(const char *role)
{
    fixture_become(&world.f, role);
}

/* Every verb, as the role that may. */
static void assert_works(const char *owner, const char *worker)
{
    memcpy(world.f.url, owner, strlen(owner) + 1);
    says(&world.f, 0, "schema is up to date", "migrate");
    runs(&world.f, 0,
         "seed --users 30 --subscriptions 60 --skus 20 --orders 60 --seed 3 --now "
         "2024-03-01");
    memcpy(world.f.url, worker, strlen(worker) + 1);
    runs(&world.f, 0, "run --once --now 2024-05-01T00:00:00Z");
    runs(&world.f, 0, "audit --json --now 2024-05-01T00:00:00Z");
    assert_string_equal(said_broken(), "");
    runs(&world.f, 0, "report");
    runs(&world.f, 0, "status --json");
    runs(&world.f, 0, "parked");
    says(&world.f, 0, "2024-0", "explain subscription 1");
    says(&world.f, 0, "2024-0", "explain order 1");
}

static void forget_schema(void)
{
    world_do("DROP SCHEMA ledgerlock CASCADE");
}

/* Guarantee: How the sessions of a database or of a role print times, intervals, names
 * and numbers changes nothing that the program does or finds. */
CASE(sessions_that_print_otherwise_change_nothing)
{
    char owner[FIXTURE_URL], worker[FIXTURE_URL];

    forget_schema();
    as("ledgerlock_owner");
    runs(&world.f, 0, "migrate");
    fixture_url_as(&world.f, "ledgerlock_owner", owner, sizeof owner);
    fixture_url_as(&world.f, "ledgerlock_worker", worker, sizeof worker);
    assert_works(owner, worker);
}

/* ---- behind a pooler ---- */

static struct pgbouncer bouncer;

static const char *lacks(void)
{
    return !pgbouncer_is_there() ? "pgbouncer is not installed; scripts/setup does it"
                                 : NULL;
}

static void open_behind(void)
{
    world_open();
    pgbouncer_open(&bouncer, "transaction", 4);
    fixture_env("LEDGERLOCK_POSTGRES_PASSWORD_FILE", bouncer.password_file);
    fixture_env("LEDGERLOCK_POSTGRES_POOLING", "transaction");
}

static void close_behind(void)
{
    pgbouncer_close(&bouncer);
    world_close();
}

static const struct test_group pooled = {
    .missing = lacks, .open = open_behind, .end = world_end, .close = close_behind};

/* Guarantee: The same holds behind PgBouncer in transaction mode. */
CASE(sessions_of_a_pooler_that_print_otherwise_change_nothing, .group = &pooled)
{
    char owner[FIXTURE_URL], worker[FIXTURE_URL];

    pgbouncer_url(&bouncer, &world.f, "ledgerlock_owner", owner, sizeof owner);
    pgbouncer_url(&bouncer, &world.f, "ledgerlock_worker", worker, sizeof worker);
    assert_works(owner, worker);
}

/* ---- functions ---- */

/* clang-format off */
/* Of each function that a client may call one that does something, in this order. */
static const char *const calls[] = {
    "SELECT create_user('ann', 'USD')",
    "SELECT deposit(1, 'USD', 100000, 'd')",
    "SELECT receive_stock('A', '1', 20)",
    "SELECT adjust_stock('A', -2, 'broken', 'a')",
    "SELECT place_order(1, 'o', '[{\"sku\": \"A\", \"qty\": 3}]')",
    "SELECT place_order(1, 'o2', '[{\"sku\": \"A\", \"qty\": 1}]')",
    "SELECT cancel_order(1, 2)",
    "SELECT subscribe(1, 'basic', 900, 'USD', 'month', 1, now() - interval '1 hour', 0, 's')",
    "SELECT subscribe(1, 'other', 700, 'USD', 'week', 1, now() - interval '1 hour', 1, 's2')",
    NULL, /* the pool works */
    "SELECT set_terms(1, 1, 1, 'more', 2, 450)",
    "SELECT set_price(1, 1, 2, 500)",
    "SELECT change_now(1, 1, 'pro', 1, 5000, 'c')",
    "SELECT pause_subscription(1, 2, 2, 1)",
    "SELECT refund(1, 'charge', 1, 0, 100, 'late', 'r')",
    "SELECT return_units(1, 1, 'A', 1, 'broken', 'b')",
    "SELECT withdraw(1, 'USD', 50, 'asked for', 'w')",
    "SELECT cancel_subscription(1, 2)",
    "SELECT pause_job('billing', 'a look'), resume_job('billing')",
};

/* clang-format on */

/* The totals after the calls, in the world that is open. */
static const char *work(void)
{
    char url[FIXTURE_URL];
    PGconn *client;

    world_sku(1, "A", 5, 250);
    fixture_url_as(&world.f, "ledgerlock_test_client", url, sizeof url);
    client = session_open(url);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (calls[i] != NULL)
            session_do(client, calls[i]);
        else
            runs(&world.f, 0, "run --once");
    }
    PQfinish(client);
    runs(&world.f, 0, "audit --lag 0s");
    return world_totals();
}

/* Guarantee: A function of ours does the same in whatever session a client calls it. */
CASE(functions_do_the_same_in_sessions_that_print_otherwise, .open = NULL)
{
    static const struct world_plan plain = {.batch = 10};
    char expected[512];

    world_close();
    world_open_as(&plain);
    (void)snprintf(expected, sizeof expected, "%s", work());
    world_close();
    world_open();
    promise_text(work(), expected, "totals", __FILE__, __LINE__);
}

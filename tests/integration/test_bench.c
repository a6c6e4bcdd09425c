/* `ledgerlock bench`: what it refuses, and that its figures are those of the tables. */
#include <jansson.h>

#include "tests/lib/fixture.h"

static struct fixture f;
static struct fixture_output o;

static int open_unmarked(void **state)
{
    (void)state;
    fixture_open_migrated(&f);
    return 0;
}

static int open_marked(void **state)
{
    (void)state;
    fixture_open_migrated(&f);
    fixture_exec(f.url, "CREATE SCHEMA ledgerlock_bench");
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    fixture_close(&f);
    return 0;
}

static int64_t ask(const char *sql)
{
    return fixture_query_int8(f.url, sql);
}

static json_t *member(json_t *doc, const char *section, const char *key)
{
    return json_object_get(json_object_get(doc, section), key);
}

static int64_t number(json_t *doc, const char *section, const char *key)
{
    json_t *value = member(doc, section, key);

    if (!json_is_number(value))
        fail_msg("no number %s.%s", section, key);
    return (int64_t)json_number_value(value);
}

/* Runs it with --json and two workers; the caller frees the document. */
static json_t *bench(const char *mode, const char *rows, const char *more)
{
    json_t *doc;

    (void)fixture_run(&f, &o, "bench", mode, "--rows", rows, "--workers", "2",
                      "--batch", "50", "--json", more, NULL);
    if (o.code != 0)
        fail_msg("bench %s: exit %d: %s%s", mode, o.code, o.out, o.err);
    doc = json_loads(o.out, 0, NULL);
    assert_non_null(doc);
    return doc;
}

/* More due than can be done, for a second. */
static json_t *steady(const char *flag, const char *value)
{
    json_t *doc;

    (void)fixture_run(&f, &o, "bench", "billing", "--steady", "--seconds", "1",
                      "--workers", "2", "--json", flag, value, NULL);
    if (o.code != 0)
        fail_msg("bench --steady: exit %d: %s%s", o.code, o.out, o.err);
    doc = json_loads(o.out, 0, NULL);
    assert_non_null(doc);
    return doc;
}

static void bench_refuses_an_unmarked_database_and_keeps_its_rows(void **state)
{
    (void)state;
    fixture_exec(f.url, "INSERT INTO ledgerlock.users (user_id, currency)"
                        " VALUES (7, 'USD')");
    assert_int_equal(fixture_run(&f, &o, "bench", "billing", "--rows", "100", NULL), 6);
    fixture_assert_contains(o.err, "CREATE SCHEMA ledgerlock_bench");
    assert_int_equal(ask("SELECT count(*) FROM ledgerlock.users WHERE user_id = 7"), 1);
}

static void bench_billing_counts_what_is_committed(void **state)
{
    json_t *doc = bench("billing", "1000", NULL);

    (void)state;
    assert_int_equal(number(doc, "result", "charges"), 1000);
    assert_int_equal(
        ask("SELECT count(*) FROM ledgerlock.charges WHERE state = 'captured'"), 1000);
    assert_int_equal(number(doc, "counters", "charged"), 1000);
    assert_int_equal(number(doc, "result", "left_due"), 0);
    assert_string_equal(json_string_value(member(doc, "result", "audit")), "held");
    json_decref(doc);
}

/* A row more than the workers counted: the figures are refused, not printed. */
static void bench_refuses_figures_that_the_tables_deny(void **state)
{
    (void)state;
    fixture_exec(f.url,
                 "CREATE FUNCTION public.twice() RETURNS trigger LANGUAGE plpgsql AS $$"
                 " BEGIN INSERT INTO ledgerlock.charges"
                 " SELECT 999999, 0, 1, now(), now() + interval '1 day', 1, 'captured',"
                 " 1, 0, 'x', now() ON CONFLICT DO NOTHING; RETURN NULL; END $$;"
                 "CREATE TRIGGER twice AFTER UPDATE ON ledgerlock.subscriptions"
                 " FOR EACH STATEMENT EXECUTE FUNCTION public.twice()");
    assert_int_equal(fixture_run(&f, &o, "bench", "billing", "--rows", "100", NULL),
                     70);
    fixture_assert_contains(o.err, "counted 100 charges but the tables hold 101");
}

/* Charged again and again until the time is over. */
static void bench_steady_runs_for_its_time_and_counts_every_period(void **state)
{
    json_t *doc = steady("--rows", "100");

    (void)state;
    assert_in_range(json_real_value(member(doc, "result", "seconds")) * 1000, 900,
                    3000);
    assert_true(number(doc, "result", "charges") > 100);
    assert_int_equal(number(doc, "result", "charges"),
                     ask("SELECT count(*) FROM ledgerlock.charges"));
    assert_int_equal(number(doc, "result", "left_due"), 100);
    json_decref(doc);
}

/* A second run over the same rows: what it counts is its own, nothing was wiped. */
static void bench_keep_goes_on_over_the_rows_that_are_there(void **state)
{
    json_t *first = steady("--rows", "100"), *second = steady("--keep", NULL);
    int64_t charged = number(first, "result", "charges");

    (void)state;
    assert_int_equal(number(second, "load", "rows"), 100);
    assert_true(json_is_true(member(second, "load", "kept")));
    assert_true(number(second, "result", "charges") > 0);
    assert_int_equal(charged + number(second, "result", "charges"),
                     ask("SELECT count(*) FROM ledgerlock.charges"));
    assert_string_equal(json_string_value(member(second, "result", "audit")), "held");
    json_decref(first);
    json_decref(second);
}

static void bench_keep_where_nothing_is_due_is_wrong_use(void **state)
{
    (void)state;
    json_decref(bench("billing", "100", NULL));
    assert_int_equal(
        fixture_run(&f, &o, "bench", "billing", "--steady", "--keep", NULL), 2);
    fixture_assert_contains(o.err, "nothing is due");
    assert_int_equal(ask("SELECT count(*) FROM ledgerlock.charges"), 100);
}

static void bench_orders_decides_every_order_and_sells_most(void **state)
{
    json_t *doc = bench("orders", "1000", NULL);

    (void)state;
    assert_int_equal(number(doc, "result", "orders"), 1000);
    assert_int_equal(
        ask("SELECT count(*) FROM ledgerlock.orders WHERE state <> 'pending'"), 1000);
    assert_in_range(
        ask("SELECT count(*) FROM ledgerlock.orders WHERE state = 'fulfilled'"), 800,
        999);
    assert_in_range(ask("SELECT count(*) FROM ledgerlock.order_lines"), 2000, 3000);
    json_decref(doc);
}

static void bench_hot_sku_sells_a_tenth_to_the_last_piece(void **state)
{
    json_t *doc = bench("hot-sku", "1000", NULL);

    (void)state;
    assert_true(json_is_true(member(doc, "result", "totals_exact")));
    assert_int_equal(ask("SELECT count(*) FROM ledgerlock.stock WHERE on_hand = 0"), 1);
    assert_int_equal(
        ask("SELECT count(*) FROM ledgerlock.orders WHERE state = 'fulfilled'"), 100);
    json_decref(doc);
}

static const char *const figures[] = {"seconds",
                                      "charges_per_s",
                                      "commits",
                                      "batch_p50_ms",
                                      "batch_p99_ms",
                                      "charges_per_commit",
                                      "flushes_per_charge",
                                      "keys_busy_share",
                                      "wal_bytes_per_charge",
                                      "workers_cpu_s",
                                      "redis_cpu_s",
                                      "postgres_cpu_s",
                                      "peak_mib_per_worker"};
static const char *const settings[] = {"fsync", "synchronous_commit", "shared_buffers",
                                       "locks"};

static void bench_says_every_figure_and_what_it_was_measured_on(void **state)
{
    json_t *doc = bench("billing", "1000", "--no-audit");

    (void)state;
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        (void)number(doc, "result", figures[i]);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        assert_true(json_is_string(member(doc, "settings", settings[i])));
    assert_int_equal(number(doc, "settings", "batch"), 50);
    assert_int_equal(number(doc, "settings", "workers"), 2);
    assert_true(json_is_string(member(doc, "versions", "PostgreSQL")));
    json_decref(doc);
}

/* Figures that come from somewhere else than the rows: each was really read. */
static void bench_reads_latency_wal_and_memory(void **state)
{
    json_t *doc = bench("billing", "1000", "--no-audit");

    (void)state;
    assert_true(json_real_value(member(doc, "result", "batch_p50_ms")) > 0);
    assert_true(json_real_value(member(doc, "result", "wal_bytes_per_charge")) > 100);
    assert_true(json_real_value(member(doc, "result", "flushes_per_charge")) > 0);
    assert_true(json_real_value(member(doc, "result", "peak_mib_per_worker")) > 1);
    assert_in_range(number(doc, "result", "commits"), 20, 1000);
    json_decref(doc);
}

/* Twice in a row, and a second run begins with its own rows only. */
static void bench_wipes_what_an_earlier_one_left(void **state)
{
    (void)state;
    json_decref(bench("hot-sku", "200", NULL));
    json_decref(bench("billing", "300", NULL));
    assert_int_equal(ask("SELECT count(*) FROM ledgerlock.users"), 300);
    assert_int_equal(ask("SELECT count(*) FROM ledgerlock.orders"), 0);
}

static void bench_without_redis_ends_and_says_so(void **state)
{
    (void)state;
    (void)snprintf(f.redis_url, sizeof f.redis_url, "unix:///nowhere/redis.sock");
    assert_int_equal(fixture_run(&f, &o, "bench", "billing", "--rows", "100", NULL), 5);
    fixture_assert_contains(o.err, "redis.url");
}

static void bench_refuses_a_redis_that_evicts(void **state)
{
    struct fixture_redis r = {.pid = 0};

    (void)state;
    fixture_redis_start(&r, "--maxmemory-policy", "allkeys-lru", NULL);
    (void)snprintf(f.redis_url, sizeof f.redis_url, "%s", r.url);
    assert_int_equal(fixture_run(&f, &o, "bench", "billing", "--rows", "100", NULL), 6);
    fixture_assert_contains(o.err, "noeviction");
    fixture_redis_close(&r);
}

static void bench_with_wrong_words_is_wrong_use(void **state)
{
    (void)state;
    assert_int_equal(fixture_run(&f, &o, "bench", "biling", NULL), 2);
    assert_int_equal(fixture_run(&f, &o, "bench", "orders", "--steady", NULL), 2);
    assert_int_equal(fixture_run(&f, &o, "bench", "locks", "--rows", "100", NULL), 2);
    assert_int_equal(fixture_run(&f, &o, "bench", "billing", "--keep", NULL), 2);
    fixture_assert_contains(o.err, "--keep goes with --steady");
}

#define MARKED(test) cmocka_unit_test_setup_teardown(test, open_marked, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            bench_refuses_an_unmarked_database_and_keeps_its_rows, open_unmarked,
            close_all),
        MARKED(bench_billing_counts_what_is_committed),
        MARKED(bench_refuses_figures_that_the_tables_deny),
        MARKED(bench_steady_runs_for_its_time_and_counts_every_period),
        MARKED(bench_keep_goes_on_over_the_rows_that_are_there),
        MARKED(bench_keep_where_nothing_is_due_is_wrong_use),
        MARKED(bench_orders_decides_every_order_and_sells_most),
        MARKED(bench_hot_sku_sells_a_tenth_to_the_last_piece),
        MARKED(bench_says_every_figure_and_what_it_was_measured_on),
        MARKED(bench_reads_latency_wal_and_memory),
        MARKED(bench_wipes_what_an_earlier_one_left),
        MARKED(bench_without_redis_ends_and_says_so),
        MARKED(bench_refuses_a_redis_that_evicts),
        MARKED(bench_with_wrong_words_is_wrong_use),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

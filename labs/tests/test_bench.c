/* ledgerlock-bench: what it refuses, and that its figures are those of the tables. */
#include <jansson.h>

#include "tests/lib/one_database.h"

static void open_marked(void)
{
    one_open();
    fixture_exec(f.url, "CREATE SCHEMA ledgerlock_bench");
}

GROUP(.open = open_marked, .close = one_close);

static double result(const char *name)
{
    char path[64];

    (void)snprintf(path, sizeof path, "result/%s", name);
    return said_number(path);
}

/* Runs it with two workers. */
static void bench(const char *words)
{
    runs(&f, 0, "bench --workers 2 --json %s", words);
}

CASE(bench_refuses_an_unmarked_database_and_keeps_its_rows, .open = one_open)
{
    fixture_exec(f.url,
                 "INSERT INTO ledgerlock.users (user_id, currency) VALUES (7, 'USD')");
    says(&f, 6, "CREATE SCHEMA ledgerlock_bench", "bench billing --rows 100");
    holds(&f, 1, "SELECT count(*) FROM users WHERE user_id = 7");
}

CASE(bench_billing_counts_what_is_committed)
{
    bench("billing --rows 1000 --batch 50");
    said_are("result/charges=1000, counters/charged=1000, result/left_due=0", "%s", "");
    holds(&f, 1000, "SELECT count(*) FROM charges WHERE state = 'captured'");
    assert_string_equal(said_text("result/audit"), "held");
}

/* A row more than the workers counted: the figures are refused, not printed. */
CASE(bench_refuses_figures_that_the_tables_deny)
{
    fixture_exec(
        f.url,
        "CREATE FUNCTION public.twice() RETURNS trigger LANGUAGE plpgsql AS $$"
        " BEGIN INSERT INTO ledgerlock.charges"
        " SELECT 999999, 0, 1, date_trunc('month', now()), now() + interval '1 day', 1, 'captured',"
        " 1, 0, 'x', now() ON CONFLICT DO NOTHING; RETURN NULL; END $$;"
        "CREATE TRIGGER twice AFTER UPDATE ON ledgerlock.subscriptions"
        " FOR EACH STATEMENT EXECUTE FUNCTION public.twice()");
    says(&f, 70, "counted 100 charges but the tables hold 101",
         "bench billing --rows 100");
}

/* Rows are charged again and again until the time is over. A second run over the same
 * ones: what it counts is its own, nothing was wiped. */
CASE(bench_steady_runs_for_its_time_and_keep_goes_on_over_its_rows)
{
    double first;

    bench("billing --steady --seconds 3 --rows 100");
    first = result("charges");
    said_are("seconds>0, charges>100, left_due=100", "result");
    assert_int_equal(first, ask("SELECT count(*) FROM charges"));
    bench("billing --steady --seconds 1 --keep");
    said_are("load/rows=100, load/kept=1, result/charges>0", "%s", "");
    assert_int_equal(first + result("charges"), ask("SELECT count(*) FROM charges"));
    assert_string_equal(said_text("result/audit"), "held");
}

CASE(bench_keep_where_nothing_is_due_is_wrong_use)
{
    bench("billing --rows 100 --batch 50");
    says(&f, 2, "nothing is due", "bench billing --steady --keep");
    holds(&f, 100, "SELECT count(*) FROM charges");
}

CASE(bench_orders_decides_every_order_and_sells_most)
{
    bench("orders --rows 1000 --batch 50");
    assert_int_equal(result("orders"), 1000);
    holds(&f, 1000, "SELECT count(*) FROM orders WHERE state <> 'pending'");
    assert_in_range(ask("SELECT count(*) FROM orders WHERE state = 'fulfilled'"), 800,
                    999);
    assert_in_range(ask("SELECT count(*) FROM order_lines"), 2000, 3000);
    assert_int_equal(result("out_of_order"), 0);
}

/* And a run begins with its own rows only. */
CASE(bench_hot_sku_sells_a_tenth_to_the_last_piece_and_the_next_run_wipes_it)
{
    bench("hot-sku --rows 1000 --batch 50");
    assert_true(said_number("result/totals_exact"));
    holds(&f, 1, "SELECT count(*) FROM stock WHERE on_hand = 0");
    holds(&f, 100, "SELECT count(*) FROM orders WHERE state = 'fulfilled'");
    bench("billing --rows 300 --batch 50");
    holds(&f, 300, "SELECT count(*) FROM users");
    holds(&f, 0, "SELECT count(*) FROM orders");
}

static const struct {
    const char *name, *mode, *column;
} tables[] = {{"users", "billing", "user_id"},
              {"subscriptions", "billing", "user_id"},
              {"orders", "orders", "order_id"},
              {"order_lines", "orders", "order_id"}};

CASE_ROWS(bench_loads_in_the_order_of_sign_up_or_shuffled, tables)
{
    char neighbours[256]; /* on disk that have neighbouring ids */

    (void)snprintf(neighbours, sizeof neighbours,
                   "SELECT count(*) FROM (SELECT %s - lag(%s) OVER (ORDER BY ctid) AS"
                   " step FROM %s) AS t WHERE step = 1",
                   row->column, row->column, row->name);
    runs(&f, 0, "bench %s --load-only --rows 1000", row->mode);
    assert_int_equal(ask(neighbours), 999);
    runs(&f, 0, "bench %s --json --load-only --shuffled --rows 1000", row->mode);
    assert_string_equal(said_text("load/order"), "shuffled");
    assert_in_range(ask(neighbours), 0, 20);
}

/* clang-format off */
static const char *const figures[] = {
    "seconds", "charges_per_s", "cpu_us_per_charge", "workers_cpu_us_per_charge", "redis_cpu_us_per_charge",
    "postgres_cpu_us_per_charge", "commits", "charges_per_commit", "flushes_per_charge", "keys_busy_share",
    "wal_bytes_per_charge", "peak_mib_per_worker",
};

/* clang-format on */

/* Figures that come from somewhere else than the rows were really read. */
CASE(bench_says_every_figure_and_what_it_was_measured_on)
{
    /* So many rows that the workers are there long enough to be read. */
    bench("billing --rows 10000 --batch 50 --no-audit");
    assert_true(result("cpu_us_per_charge") > result("workers_cpu_us_per_charge"));
    said_are("workers_cpu_us_per_charge>0, wal_bytes_per_charge>100, "
             "flushes_per_charge>0, peak_mib_per_worker>1, transaction_p50_ms>0, "
             "commits>199, commits<10001",
             "result");
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        (void)result(figures[i]);
    said_are("billing_batch=50, workers=2", "settings");
    (void)said_text("settings/fsync");
    (void)said_text("settings/synchronous_commit");
    (void)said_text("settings/shared_buffers");
    (void)said_text("settings/locks");
    (void)said_text("versions/PostgreSQL");
}

CASE(bench_without_redis_ends_and_says_so)
{
    (void)snprintf(f.redis_url, sizeof f.redis_url, "unix:///nowhere/redis.sock");
    says(&f, 5, "redis.url", "bench billing --rows 100");
}

CASE(bench_refuses_a_redis_that_evicts)
{
    struct fixture_redis r = {.pid = 0};

    fixture_redis_start(&r, "--maxmemory", "1gb", "--maxmemory-policy", "allkeys-lru",
                        NULL);
    (void)snprintf(f.redis_url, sizeof f.redis_url, "%s", r.url);
    says(&f, 6, "noeviction", "bench billing --rows 100");
    fixture_redis_close(&r);
}

CASE(bench_with_wrong_words_is_wrong_use)
{
    runs(&f, 2, "bench biling");
    runs(&f, 2, "bench orders --steady");
    runs(&f, 2, "bench locks --rows 100");
    runs(&f, 2, "bench locks --shuffled");
    says(&f, 2, "--keep goes with --steady", "bench billing --keep");
}

/* clang-format off */
static const char *const lock_figures[] = {
    "1 key: ratio", "100 keys: ratio", "1000 keys: ratio", "64 waiters: hand-overs/s", "64 waiters: commands/hand-over",
    "1 key: client CPU us", "1 key: server CPU us", "32 idle waiters: writes/s of one", "renewal of 1000 locks: round trips",
    "renewal of 1000 locks: ms (slowest round)", "connect: round trips",
};

/* clang-format on */

/* Every figure that docs/lock.md reports is there and was measured. */
CASE(bench_locks_reports_every_figure)
{
    const char *target = NULL;
    json_t *doc, *locks = NULL;

    runs(&f, 0, "bench locks --seconds 1 --repetitions 1 --json");
    doc = json_loads(said.out, 0, NULL);
    assert_int_equal(json_unpack(doc, "{s:o, s:{s:s}}", "locks", &locks, "targets",
                                 "connect: round trips", &target),
                     0);
    for (size_t i = 0; i < sizeof lock_figures / sizeof lock_figures[0]; i++) {
        const json_t *figure = json_object_get(locks, lock_figures[i]);

        assert_true(json_is_number(figure));
        if (strstr(lock_figures[i], "idle") == NULL) /* which may write nothing */
            assert_true(json_number_value(figure) > 0);
    }
    fixture_assert_contains(target, "wanted <= 2.00, found ");
    fixture_assert_contains(target, ": met");
    json_decref(doc);
    runs(&f, 2, "bench");
}

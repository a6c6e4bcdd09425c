/* scripts/bench.d over a small database: that each figure is there and what was done
 * for it. How high it is depends on what else runs. */
#define _POSIX_C_SOURCE 200809L /* popen, mkdtemp */
#include <jansson.h>
#include <stdarg.h>

#include "tests/lib/one_database.h"

static char dir[128], super[FIXTURE_URL];
static char printed[FIXTURE_OUTPUT]; /* by the last command */

/* Runs it to its end, which must be a good one. */
__attribute__((format(printf, 1, 2))) static void shell(const char *format, ...)
{
    char command[2048];
    va_list ap;
    FILE *pipe;
    size_t n;
    int status;

    va_start(ap, format);
    assert_in_range(vsnprintf(command, sizeof command, format, ap), 0,
                    sizeof command - 1);
    va_end(ap);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    n = fread(printed, 1, sizeof printed - 1, pipe);
    printed[n] = '\0';
    status = pclose(pipe);
    if (status != 0)
        fail_msg("%s: ended with %d: %s", command, status, printed);
}

/* A marked database, the folder that the scripts write to, and what scripts/bench
 * tells a measurement of the servers, here of the test's. */
static void open_all(void)
{
    const char *source = getenv("LL_TEST_SOURCE");
    char sockets[256];

    one_open();
    fixture_url_as(&f, "postgres", super, sizeof super);
    fixture_exec(f.url, "CREATE SCHEMA ledgerlock_bench");
    fixture_query_text(super, "SHOW unix_socket_directories", sockets, sizeof sockets);
    fixture_temporary(dir, sizeof dir, "bench");
    assert_non_null(mkdtemp(dir));
    (void)setenv("LL_ROOT", source != NULL ? source : ".", 1);
    (void)setenv("LL_DIR", dir, 1);
    (void)setenv("LL_PG_DIR", sockets, 1);
    (void)setenv("LL_REDIS_SOCK", f.redis_url + strlen("unix://"), 1);
    (void)setenv("LEDGERLOCK_LOCKS_PREFIX", f.prefix, 1);
    (void)setenv("BENCH_PROGRAM", fixture_program(), 1);
    (void)setenv("BENCH_DATABASE", f.database, 1);
    (void)setenv("BENCH_FILESYSTEM", "any", 1);
    shell("mkdir $LL_DIR/tmp");
}

static void close_all(void)
{
    shell("rm -rf $LL_DIR");
    one_close();
}

GROUP(.open = open_all, .close = close_all);

/* Runs a script of scripts/bench.d; what it has written with --json is said. */
static void measure(const char *script, const char *flags)
{
    char path[160];
    FILE *file;

    shell("export LL_PG_BIN=$(pg_config --bindir) LL_PG_PID=$(psql -Atc \"SELECT "
          "split_part(pg_read_file('postmaster.pid'), E'\\n', 1)\" '%s') "
          "LL_REDIS_PID=$(redis-cli -s $LL_REDIS_SOCK info server | sed -n "
          "'s/^process_id:\\([0-9]*\\).*/\\1/p'); exec timeout 800 python3 -B "
          "$LL_ROOT/scripts/bench.d/%s %s --json $LL_DIR/result.json 2>&1",
          super, script, flags);
    (void)snprintf(path, sizeof path, "%s/result.json", dir);
    file = fopen(path, "r");
    assert_non_null(file);
    said.out[fread(said.out, 1, sizeof said.out - 1, file)] = '\0';
    (void)fclose(file);
}

/* Each was measured: those of "group/NAME" are above this. */
static void above(double least, const char *group, const char *names)
{
    char path[128], copy[256], *rest = NULL;

    (void)snprintf(copy, sizeof copy, "%s", names);
    for (char *name = strtok_r(copy, " ", &rest); name != NULL;
         name = strtok_r(NULL, " ", &rest)) {
        (void)snprintf(path, sizeof path, "%s/%s", group, name);
        if (said_number(path) <= least)
            fail_msg("%s is %f", path, said_number(path));
    }
}

/* Of a row that comes due in an idle pool, and of rows that trickle in. */
CASE(idle_measures_delays_and_cores)
{
    measure("idle.py", "--rows 3 --seconds 1 --per-second 100");
    assert_int_equal(said_number("delay/subscription/rows"), 3);
    assert_int_equal(said_number("delay/order/rows"), 3);
    above(0, "delay",
          "subscription/p50_ms subscription/p99_ms subscription/most_ms order/p50_ms "
          "order/p99_ms order/most_ms");
    assert_int_equal(said_number("delay/subscription/target_ms"), 1100);
    assert_int_equal(said_number("delay/order/target_ms"), 50);
    above(0, "trickle", "rows_per_s cores/all");
    above(1, "idle", "workers");
}

/* It fails itself when a call has left no row. */
CASE(clients_measures_a_call)
{
    measure("clients.py", "--users 100 --calls 10 --rounds 2");
    above(1, "us_a_call/place_order", "median");
    above(1, "us_a_call/deposit", "median");
}

/* The page was read while the pool worked, and top was started. */
CASE(page_measures_the_pool_that_is_watched)
{
    measure("page.py", "--rows 400 --workers 1 --seconds 1 --rounds 1");
    above(0, "rate",
          "with/charges_per_s/median without/charges_per_s/median ratio/median "
          "with/cpu_us_per_charge/median");
    above(1000, "page", "bytes");
    above(0, "page", "all_files_ms");
    above(0, "slow", "p50_ms most_ms");
    above(0, "top", "start_ms figures_ms");
}

static const struct {
    const char *name, *scene;
} pressure[] = {
    {"terminated", "all sessions are terminated twice a second"},
    {"killed", "the serving pool is killed"},
};

/* No order that a buyer was told of is lost, and there is a verdict. */
CASE_ROWS(pressure_loses_no_order, pressure)
{
    char flags[160], path[96];

    (void)snprintf(flags, sizeof flags, "--rate 40 --seconds 4 --users 200 --only '%s'",
                   row->scene);
    measure("pressure.py", flags);
    fixture_assert_contains(printed, row->scene);
    if (strstr(printed, "  met") == NULL)
        fixture_assert_contains(printed, "MISSED");
    (void)snprintf(path, sizeof path, "cases/%s", row->scene);
    above(60, path, "acknowledged stored decided");
    above(0, path, "before_per_s during_per_s after_per_s p99_ms prompt_share");
    (void)snprintf(path, sizeof path, "cases/%s/lost", row->scene);
    promise_int_equal((int)said_number(path), 0);
    (void)snprintf(path, sizeof path, "cases/%s/audit_holds", row->scene);
    promise_true(said_number(path) == 1);
}

/* The rate is measured when as many charges as rows were made since the load, in both
 * orders of the rows. */
CASE(size_rate_is_the_steady_one_of_both_orders)
{
    measure(
        "size.py",
        "--only rate --rows 400 --small-rows 100 --workers 1 --batch 50 --seconds 1");
    for (int i = 0; i < 2; i++) {
        const char *order = i == 0 ? "rate/sign-up" : "rate/shuffled";

        above(1, order, "large/warm_up_seconds/median");
        above(0, order,
              "large/charges_per_s/median ratio/median small/cpu_us_per_charge/median");
        above(100, order, "small/wal_bytes_per_charge/median");
        above(0, order,
              "grown/database_gib grown/tables_gib/charges grown/audit_seconds");
        above(1, order, "grown/audit_mib");
    }
    assert_true(said_number("rate/sign-up/target") == 0.78);
    assert_true(said_number("rate/shuffled/target") == 0.65);
}

/* All charges are in thirteen months, and those of the last one stay open. */
CASE(size_audits_one_open_month_beside_closed_ones)
{
    measure("size.py", "--only months --audit-rows 40000");
    assert_in_range(said_number("months/charges"), 39000, 40000);
    assert_in_range(said_number("months/months_closed"), 12, 13);
    assert_in_range(said_number("months/charges_open"), 1, 3200);
    above(0, "months", "all_open_s closed_s closed_with_sealed_rows_s");
}

static const struct {
    const char *name, *flags, *scene;
} liveness[] = {
    {"users", "--rows 200 --seconds 60 --scale 100", "billing: a held user"},
    {"skus", "--orders 100 --seconds 2", "orders: a held SKU"},
};

/* Of users all others are worked; of orders, how many beside a held SKU is a figure. */
CASE_ROWS(liveness_measures_others_beside_held, liveness)
{
    char flags[160], path[64];

    (void)snprintf(flags, sizeof flags, "%s --only '%s'", row->flags, row->scene);
    measure("liveness.py", flags);
    assert_int_equal(said_number("cases"), 2);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "cases/%s (%s)", row->scene,
                       i == 0 ? "row" : "key");
        above(0, path, "undisturbed_per_s beside_per_s share/median");
    }
    if (row == &liveness[0])
        assert_true(said_number("cases/billing: a held user (row)/all_done") == 1);
}

/* Of the audit: its orders are those that the pool serves, each to its last line. */
CASE(size_audit_is_over_what_the_pool_has_served)
{
    measure("size.py", "--only audit --audit-rows 1000");
    assert_int_equal(said_number("audit/ten_periods_each/users"), 100);
    assert_int_equal(said_number("audit/ten_periods_each/charges"), 1000);
    assert_int_equal(said_number("audit/ten_periods_each/order_lines"), 1000);
    assert_int_equal(said_number("audit/one_period_each/users"), 1000);
    assert_int_equal(said_number("audit/one_period_each/charges"), 1000);
    above(0, "audit", "ten_periods_each/seconds one_period_each/seconds");
}

CASE(baselines_tell_and_draw_how_far_its_rounds_lie_apart)
{
    const char *name;
    json_t *doc, *rates;

    measure(
        "baselines.py",
        "--only hot-sku --rounds 2 --rows 500 --orders 100 --workers 2 --batch 50 --seconds 1");
    fixture_assert_contains(printed, "highest   target");
    doc = json_loads(said.out, 0, NULL);
    json_object_foreach(json_object_get(doc, "rates"), name, rates)
    {
        char lowest[128], highest[128];

        assert_int_equal(json_array_size(rates), 2);
        (void)snprintf(lowest, sizeof lowest, "lowest/%s", name);
        (void)snprintf(highest, sizeof highest, "highest/%s", name);
        assert_true(said_number(lowest) < said_number(highest));
    }
    json_decref(doc);
    assert_true(said_number("targets/0/lowest") < said_number("targets/0/highest"));
    assert_true(said_number("targets/0/lowest") <= said_number("targets/0/value"));
    assert_true(said_number("targets/0/value") <= said_number("targets/0/highest"));
    shell(
        "python3 $LL_ROOT/scripts/chart --out $LL_DIR $LL_DIR/result.json && cat $LL_DIR/comparison.svg");
    fixture_assert_contains(printed, "line class=\"spread\"");
}

/* The verdict is over as many connections as workers. */
CASE(baselines_judge_billing_by_as_many_connections)
{
    int workers = 0, connections = 0;
    json_t *doc, *first, *second;

    /* As scripts/bench grants it: the rows of the limit end with a checkpoint. One row
     * a transaction must find rows for a second on the fastest machine. */
    fixture_exec(super, "GRANT pg_checkpoint TO ledgerlock_owner");
    measure(
        "baselines.py",
        "--only billing --rounds 1 --rows 20000 --workers 1,2 --batch 50 --seconds 1 --one-row-workers 1");
    assert_int_equal(
        sscanf(said_text("targets/0/what"),
               "billing as shipped, sign-up, %d workers against the limit (billing, "
               "the limit, sign-up, %d connections)",
               &workers, &connections),
        2);
    assert_in_range(workers, 1, 2);
    assert_int_equal(connections, workers);
    doc = json_loads(said.out, 0, NULL);
    assert_int_equal(
        json_unpack(doc, "{s:[o, o, {s:n}]}", "targets", &first, &second, "target"), 0);
    json_decref(doc);
    fixture_assert_contains(printed, "CPU of a row");
}

/* The other build is this one here, in a database of its own. */
static void put_other(void)
{
    shell(
        "mkdir -p $LL_DIR/old/build && ln -sfn $(dirname $BENCH_PROGRAM) $LL_DIR/old/build/release");
}

CASE(clients_are_measured_beside_another_build)
{
    put_other();
    measure("clients.py", "--users 100 --calls 10 --rounds 2 --compare $LL_DIR/old");
    fixture_exec(super, "DROP DATABASE other");
    above(1, "us_a_call/place_order/the other", "median");
    above(1, "us_a_call/deposit/the other", "median");
    above(0, "us_a_call/place_order/calls_a_second_by_the_other", "median");
    above(0, "us_a_call/deposit/calls_a_second_by_the_other", "median");
}

CASE(compare_measures_two_builds_by_rounds)
{
    static const char *const modes[] = {
        "billing",         "billing, shuffled",  "orders",
        "hot SKU",         "both jobs together", "locks, 1 key",
        "locks, 100 keys", "locks, 1000 keys"};
    char path[64];

    put_other();
    measure(
        "compare.py",
        "$LL_DIR/old --rounds 1 --rows 300 --orders 100 --seconds 1 --lock-seconds 1");
    fixture_exec(super, "DROP DATABASE other");
    fixture_assert_contains(printed, "the one by the other");
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        (void)snprintf(path, sizeof path, "rates/%s/this build", modes[i]);
        assert_int_equal(said_number(path), 1);
        (void)snprintf(path, sizeof path, "rates/%s/the other", modes[i]);
        assert_int_equal(said_number(path), 1);
        (void)snprintf(path, sizeof path, "ratios/%s", modes[i]);
        above(0, path, i < 5 ? "median cpu/median" : "median");
    }
}

/* Runs scripts/bench where nothing can be built: an attempt leaves a mark. */
static void bench_without_a_build(const char *flags, int code)
{
    shell(
        "mkdir -p $LL_DIR/bin && printf '#!/bin/sh\ntouch $LL_DIR/built; exit 1' >$LL_DIR/bin/cmake && "
        "chmod +x $LL_DIR/bin/cmake && { PATH=$LL_DIR/bin:$PATH $LL_ROOT/scripts/bench %s 2>&1; test $? = %d; } && "
        "test ! -e $LL_DIR/built",
        flags, code);
}

CASE(flags_are_checked_before_anything_is_built)
{
    bench_without_a_build("--size -h", 0);
    fixture_assert_contains(printed, "--snapshot-seconds");
    bench_without_a_build("--size --hel", 0);
    bench_without_a_build("--baselines --workers x", 2);
    fixture_assert_contains(printed, "is no list of positive whole numbers");
    bench_without_a_build("--compare /nowhere", 2);
    fixture_assert_contains(printed, "build it first");
}

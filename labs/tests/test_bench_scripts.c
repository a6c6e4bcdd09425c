/* labs/bench over a small database: that each figure is there and what was done
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

/* Runs a mode of labs/bench; what it has written with --json is said. */
static void measure(const char *mode, const char *flags)
{
    char path[160];
    FILE *file;

    shell("export LL_PG_BIN=$(pg_config --bindir) LL_PG_PID=$(psql -Atc \"SELECT "
          "split_part(pg_read_file('postmaster.pid'), E'\\n', 1)\" '%s') "
          "LL_REDIS_PID=$(redis-cli -s $LL_REDIS_SOCK info server | sed -n "
          "'s/^process_id:\\([0-9]*\\).*/\\1/p'); exec timeout 800 python3 -B "
          "$LL_ROOT/labs/bench/run.py %s %s --json $LL_DIR/result.json 2>&1",
          super, mode, flags);
    (void)snprintf(path, sizeof path, "%s/result.json", dir);
    file = fopen(path, "r");
    assert_non_null(file);
    said.out[fread(said.out, 1, sizeof said.out - 1, file)] = '\0';
    (void)fclose(file);
}

/* Of a row that comes due in an idle pool, and of rows that trickle in. */
CASE(idle_measures_delays_and_cores)
{
    measure("pressure idle", "--rows 3 --seconds 1 --per-second 100");
    said_are("rows=3, p50_ms>0, p99_ms>0, most_ms>0, target_ms=1100",
             "delay/subscription");
    said_are("rows=3, p50_ms>0, p99_ms>0, most_ms>0, target_ms=50", "delay/order");
    said_are("trickle/rows_per_s>0, trickle/cores/all>0, idle/workers>1", "%s", "");
}

/* The page was read while the pool worked. */
CASE(page_measures_the_pool_that_is_watched)
{
    measure("pressure watched", "--rows 400 --workers 1 --seconds 1 --rounds 1");
    said_are("with/charges_per_s/median>0, without/charges_per_s/median>0, "
             "ratio/median>0, with/cpu_us_per_charge/median>0",
             "rate");
    said_are("page/bytes>1000, page/all_files_ms>0, slow/p50_ms>0, slow/most_ms>0",
             "%s", "");
}

/* Captures that are measured are those that the gateway has seen, each once,
 * and of buyers by card as many pay as there are units. */
CASE(cards_are_measured_by_the_tables_and_the_gateway)
{
    measure("cards", "--rows 200 --rounds 1 --calls 50 --latency-ms 20 --many-calls 20 "
                     "--buyers 100 --units 10 --unknowns 100");
    said_are("the pool/0>0, libcurl alone/0>0, one call at a time/0>0",
             "captures/rates");
    said_are("pool>0, postgres>0, gateway>0", "captures/cpu_us_per_capture/0");
    said_are("memory/calls>0, memory/mib>1, buyers/seconds>0, unknowns/seconds>0, "
             "unknowns/calls_of_a_payment>1",
             "%s", "");
    promise_int_equal((int)said_number("buyers/paid"), 10);
    promise_int_equal((int)said_number("buyers/refused"), 90);
    promise_int_equal((int)said_number("buyers/held"), 0);
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
    measure("pressure", flags);
    fixture_assert_contains(printed, row->scene);
    if (strstr(printed, "  met") == NULL)
        fixture_assert_contains(printed, "MISSED");
    said_are("acknowledged>60, stored>60, decided>60, before_per_s>0, during_per_s>0, "
             "after_per_s>0, p99_ms>0, prompt_share>0",
             "cases/%s", row->scene);
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
        "size",
        "--only rate --rows 400 --small-rows 100 --workers 1 --batch 50 --seconds 1");
    for (int i = 0; i < 2; i++)
        said_are("large/warm_up_seconds/median>1, large/charges_per_s/median>0, "
                 "ratio/median>0, small/cpu_us_per_charge/median>0, "
                 "small/wal_bytes_per_charge/median>100, grown/database_gib>0, "
                 "grown/tables_gib/charges>0, grown/audit_seconds>0, grown/audit_mib>1",
                 "rate/%s", i == 0 ? "sign-up" : "shuffled");
    said_are("sign-up/target=0.78, shuffled/target=0.65", "rate");
}

/* All charges are in thirteen months, and those of the last one stay open. */
CASE(size_audits_one_open_month_beside_closed_ones)
{
    measure("size", "--only months --audit-rows 40000");
    said_are("charges>38999, charges<40001, months_closed>11, months_closed<14, "
             "charges_open>0, charges_open<3201, all_open_s>0, closed_s>0, "
             "closed_with_sealed_rows_s>0",
             "months");
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
    char flags[160];

    (void)snprintf(flags, sizeof flags, "%s --only '%s'", row->flags, row->scene);
    measure("pressure beside", flags);
    assert_int_equal(said_number("cases"), 2);
    for (int i = 0; i < 2; i++)
        said_are("undisturbed_per_s>0, beside_per_s>0, share/median>0", "cases/%s (%s)",
                 row->scene, i == 0 ? "row" : "key");
    if (row == &liveness[0])
        said_are("all_done=1", "cases/billing: a held user (row)");
}

/* Of the audit: its orders are those that the pool serves, each to its last line. */
CASE(size_audit_is_over_what_the_pool_has_served)
{
    measure("size", "--only audit --audit-rows 1000");
    said_are("users=100, charges=1000, order_lines=1000, seconds>0",
             "audit/ten_periods_each");
    said_are("users=1000, charges=1000, seconds>0", "audit/one_period_each");
}

CASE(limits_tell_and_draw_how_far_its_rounds_lie_apart)
{
    const char *name;
    json_t *doc, *rates;

    measure(
        "limits",
        "--only hot-sku --rounds 2 --rows 500 --orders 100 --workers 2 --batch 50 --seconds 1");
    fixture_assert_contains(printed, "highest   target");
    fixture_assert_contains(printed, "round 1 of 2, hot SKU as shipped, sign-up: ");
    fixture_assert_contains(printed, "round 2 of 2, hot SKU as shipped, sign-up: ");
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

/* The pool runs again behind the limit, which waits for rows by functions of its own:
 * those of the product are as they were, or no pool would start. */
CASE(limits_of_orders_leave_the_product_as_it_is)
{
    fixture_exec(super, "GRANT pg_checkpoint TO ledgerlock_owner");
    measure("limits",
            "--only orders --rounds 1 --rows 500 --orders 500 --workers 1 --batch 50");
    fixture_assert_contains(printed, "orders, the limit, shuffled");
    fixture_assert_contains(printed, "orders as shipped, shuffled, against the limit");
}

/* The verdict is over as many connections as workers. */
CASE(limits_judge_billing_by_as_many_connections)
{
    int workers = 0, connections = 0;
    json_t *doc, *first, *second;

    /* As scripts/bench grants it: the rows of the limit end with a checkpoint. One row
     * a transaction must find rows for a second on the fastest machine. */
    fixture_exec(super, "GRANT pg_checkpoint TO ledgerlock_owner");
    measure(
        "limits",
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

CASE(compare_measures_two_builds_by_rounds)
{
    static const char *const modes[] = {
        "billing",          "billing, shuffled",  "orders",
        "hot SKU",          "both jobs together", "calls of place_order",
        "calls of deposit", "locks, 1 key",       "locks, 100 keys",
        "locks, 1000 keys"};
    put_other();
    measure(
        "compare",
        "$LL_DIR/old --rounds 1 --rows 300 --orders 100 --seconds 1 --calls 10 --lock-seconds 1");
    fixture_exec(super, "DROP DATABASE other");
    fixture_assert_contains(printed, "the one by the other");
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        said_are("this build=1, the other=1", "rates/%s", modes[i]);
        said_are(i < 5 ? "median>0, cpu/median>0" : "median>0", "ratios/%s", modes[i]);
    }
}

/* Guarantee: A benchmark tells how far it is also without a terminal, and with NO_COLOR
 * on one. */
CASE(benchmark_tells_how_far_it_is)
{
    shell("cat >$LL_DIR/counts.py <<'END'\n"
          "import signal, tools\n"
          "tools.PROGRESS.pause_s = 0.01\n"
          "tools.progress('counting', 0.5)\n"
          "signal.pause()\n"
          "tools.tell('counted')\n"
          "END\n"
          "export PYTHONPATH=$LL_ROOT/labs/bench LL_PG_BIN=- NO_COLOR=1; "
          "python3 -B $LL_DIR/counts.py 2>&1; python3 -Bc \"import os, pty; "
          "pty.spawn(['python3', '-B', os.environ['LL_DIR'] + '/counts.py'])\"");
    fixture_assert_contains(printed, "counting, 0 s; 1 min still\n");
    fixture_assert_contains(printed,
                            "\r\033[Kcounting, 0 s; 1 min still\r\033[Kcounted");
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
    bench_without_a_build("size -h", 0);
    fixture_assert_contains(printed, "--snapshot-seconds");
    bench_without_a_build("size --hel", 0);
    bench_without_a_build("limits --workers x", 2);
    fixture_assert_contains(printed, "is no list of positive whole numbers");
    bench_without_a_build("compare /nowhere", 2);
    fixture_assert_contains(printed, "build it first");
}

/* scripts/bench.d over a small database: that each figure is there and what was done
 * for it. How high it is depends on what else runs. */
#define _POSIX_C_SOURCE 200809L /* popen, mkdtemp */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/fixture.h"

static struct fixture f;
static char dir[128];
static char printed[FIXTURE_OUTPUT]; /* by the last command */

static const char *source(void)
{
    const char *path = getenv("LEDGERLOCK_TEST_SOURCE");

    return path != NULL ? path : ".";
}

/* A marked database, and the folder that the scripts write to. */
static int open_all(void **state)
{
    char path[160];

    (void)state;
    fixture_open_migrated(&f);
    fixture_exec(f.url, "CREATE SCHEMA ledgerlock_bench");
    fixture_temporary(dir, sizeof dir, "bench");
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/tmp", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    return 0;
}

/* Runs it to its end, which must be a good one. */
static void shell(const char *command)
{
    FILE *pipe = popen(command, "r");
    size_t n;
    int status;

    assert_non_null(pipe);
    n = fread(printed, 1, sizeof printed - 1, pipe);
    printed[n] = '\0';
    status = pclose(pipe);
    if (status != 0)
        fail_msg("%s: ended with %d: %s", command, status, printed);
}

static int close_all(void **state)
{
    char command[256];

    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf '%s'", dir);
    shell(command);
    fixture_close(&f);
    return 0;
}

/* What scripts/bench tells a measurement of the servers, here of the test's. */
static void set_places(void)
{
    char sockets[256], super[FIXTURE_URL];

    fixture_url_as(&f, "postgres", super, sizeof super);
    fixture_query_text(super, "SHOW unix_socket_directories", sockets, sizeof sockets);
    assert_int_equal(strncmp(f.redis_url, "unix://", 7), 0);
    (void)setenv("LL_ROOT", source(), 1);
    (void)setenv("LL_DIR", dir, 1);
    (void)setenv("LL_PG_DIR", sockets, 1);
    (void)setenv("LL_REDIS_SOCK", f.redis_url + 7, 1);
    (void)setenv("LEDGERLOCK_LOCKS_PREFIX", f.prefix, 1);
    (void)setenv("BENCH_PROGRAM", fixture_program(), 1);
    (void)setenv("BENCH_DATABASE", f.database, 1);
    (void)setenv("BENCH_FILESYSTEM", "any", 1);
}

/* What the measurement has written with --json; the caller frees it. */
static json_t *measure(const char *script, const char *flags)
{
    char command[1024], path[160];
    json_t *doc;

    set_places();
    (void)snprintf(path, sizeof path, "%s/result.json", dir);
    (void)snprintf(command, sizeof command,
                   "LL_PG_BIN=$(pg_config --bindir) timeout 120 python3 -B "
                   "'%s/scripts/bench.d/%s' %s --json '%s' 2>&1",
                   source(), script, flags, path);
    shell(command);
    doc = json_load_file(path, 0, NULL);
    assert_non_null(doc);
    return doc;
}

static json_t *member(json_t *doc, const char *names)
{
    char copy[128], *rest = NULL;

    (void)snprintf(copy, sizeof copy, "%s", names);
    for (char *name = strtok_r(copy, "/", &rest); name != NULL;
         name = strtok_r(NULL, "/", &rest))
        doc = json_object_get(doc, name);
    if (doc == NULL)
        fail_msg("the document has no %s", names);
    return doc;
}

static double figure(json_t *doc, const char *names)
{
    return json_number_value(member(doc, names));
}

static void assert_spread(json_t *target)
{
    double lowest = figure(target, "lowest"), highest = figure(target, "highest");

    assert_true(lowest < highest);
    assert_true(lowest <= figure(target, "value") &&
                figure(target, "value") <= highest);
}

/* Both pools were asleep; nothing but the announcement makes the second so quick. */
static void size_appear_measures_polling_and_notifications(void **state)
{
    json_t *doc = measure("size.py", "--only appear --appear 3 --poll-ms 300");

    (void)state;
    assert_int_equal(figure(doc, "appear/found_by_polling/poll_ms"), 300);
    assert_int_equal(figure(doc, "appear/found_by_polling/target_ms"), 450);
    assert_int_equal(figure(doc, "appear/notified/poll_ms"), 10000);
    assert_int_equal(figure(doc, "appear/notified/target_ms"), 50);
    assert_int_equal(figure(doc, "appear/notified/rows"), 3);
    assert_true(figure(doc, "appear/notified/p50_ms") > 0);
    assert_in_range(figure(doc, "appear/notified/most_ms"), 0, 2000);
    json_decref(doc);
}

/* The second figure begins when every row was charged since the load: in the second
 * of the first, or in a warm-up that is no shorter. */
static void size_rate_is_that_after_a_checkpoint_and_the_steady_one(void **state)
{
    json_t *doc =
        measure("size.py", "--only rate --rows 10000 --small-rows 200 "
                           "--workers 1 --batch 20 --seconds 1 --steady-seconds 2");
    json_t *fresh = member(doc, "rate/right_after_a_checkpoint");
    json_t *steady = member(doc, "rate/steady");

    (void)state;
    assert_true(figure(fresh, "large/charges_per_s/median") > 0.8 * 10000 ||
                figure(steady, "large/warm_up_seconds/median") > 1);
    assert_true(figure(fresh, "ratio/median") > 0);
    assert_true(figure(steady, "ratio/median") > 0);
    assert_true(figure(steady, "large/vacuums/median") >= 0);
    assert_true(figure(steady, "small/wal_bytes_per_charge/median") > 100);
    assert_true(figure(steady, "large/wal_page_images_per_charge/median") >= 0);
    fixture_assert_contains(printed, "right after a checkpoint");
    json_decref(doc);
}

/* Its orders are those that the pool serves, each to its last line. */
static void size_audit_is_over_what_the_pool_has_served(void **state)
{
    json_t *doc = measure("size.py", "--only audit --audit-rows 2000");

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        static const char *const read[] = {"ten_periods_each", "one_period_each"};
        json_t *found = member(member(doc, "audit"), read[i]);

        assert_int_equal(figure(found, "users"), i == 0 ? 200 : 2000);
        assert_int_equal(figure(found, "charges"), 2000);
        assert_int_equal(figure(found, "order_lines"), 2000);
        assert_true(figure(found, "seconds") > 0);
        assert_true(figure(found, "seconds_one_connection") > 0);
    }
    json_decref(doc);
}

/* What scripts/chart makes of the last result. */
static void draw(void)
{
    char command[512];

    (void)snprintf(command, sizeof command,
                   "python3 '%s/scripts/chart' --out '%s' '%s/result.json' && "
                   "cat '%s/comparison.svg'",
                   source(), dir, dir, dir);
    shell(command);
}

static void assert_two_rounds_each(json_t *doc)
{
    const char *name;
    json_t *rates;

    json_object_foreach(member(doc, "rates"), name, rates)
    {
        assert_int_equal(json_array_size(rates), 2);
        assert_true(figure(member(doc, "lowest"), name) <
                    figure(member(doc, "highest"), name));
    }
}

static void compare_tells_and_draws_how_far_its_rounds_lie_apart(void **state)
{
    json_t *doc = measure("compare.py", "--only hot-sku --rounds 2 --rows 500 --orders "
                                        "100 --workers 2 --batch 50 --seconds 1");

    (void)state;
    assert_two_rounds_each(doc);
    assert_spread(json_array_get(member(doc, "targets"), 0));
    fixture_assert_contains(printed, "highest   target");
    draw();
    fixture_assert_contains(printed, "line class=\"spread\"");
    json_decref(doc);
}

/* As scripts/bench grants it: the rows of the limit end with a checkpoint. */
static void let_owner_checkpoint(const char *verb)
{
    char super[FIXTURE_URL], sql[80];

    fixture_url_as(&f, "postgres", super, sizeof super);
    (void)snprintf(sql, sizeof sql, "%s ledgerlock_owner", verb);
    fixture_exec(super, sql);
}

/* Which contestants the verdict is over. */
static void read_judged(json_t *targets, int *workers, int *connections)
{
    json_t *what = json_object_get(json_array_get(targets, 0), "what");

    if (sscanf(json_string_value(what),
               "billing as shipped, %d workers against the limit (billing, the limit, "
               "%d connections)",
               workers, connections) != 2)
        fail_msg("%s", json_string_value(what));
}

static void compare_judges_billing_by_as_many_connections(void **state)
{
    json_t *doc, *targets;
    int workers = 0, connections = 0;

    (void)state;
    let_owner_checkpoint("GRANT pg_checkpoint TO");
    doc = measure("compare.py", "--only billing --rounds 1 --rows 9000 --workers 1,2 "
                                "--batch 50 --seconds 1 --one-row-workers 1");
    let_owner_checkpoint("REVOKE pg_checkpoint FROM");
    targets = member(doc, "targets");
    read_judged(targets, &workers, &connections);
    assert_in_range(workers, 1, 2);
    assert_int_equal(connections, workers);
    assert_true(json_is_null(json_object_get(json_array_get(targets, 1), "target")));
    json_decref(doc);
}

#define MARKED(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

/* Runs scripts/bench where nothing can be built: whoever tries leaves a mark. */
static void bench_without_a_build(const char *flags, int code)
{
    char command[1024];

    (void)snprintf(command, sizeof command,
                   "mkdir -p '%s/bin' && printf '#!/bin/sh\ntouch \"%s/built\"; exit 1'"
                   " >'%s/bin/cmake' && chmod +x '%s/bin/cmake' &&"
                   " { PATH='%s/bin':$PATH '%s/scripts/bench' %s 2>&1; test $? = %d; }"
                   " && test ! -e '%s/built'",
                   dir, dir, dir, dir, dir, source(), flags, code, dir);
    shell(command);
}

static void flags_are_looked_at_before_anything_is_built(void **state)
{
    (void)state;
    bench_without_a_build("--size -h", 0);
    fixture_assert_contains(printed, "--snapshot-seconds");
    bench_without_a_build("--size --hel", 0);
    bench_without_a_build("--compare --workers x", 2);
    fixture_assert_contains(printed, "is no list of positive whole numbers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MARKED(size_appear_measures_polling_and_notifications),
        MARKED(size_rate_is_that_after_a_checkpoint_and_the_steady_one),
        MARKED(size_audit_is_over_what_the_pool_has_served),
        MARKED(compare_tells_and_draws_how_far_its_rounds_lie_apart),
        MARKED(compare_judges_billing_by_as_many_connections),
        MARKED(flags_are_looked_at_before_anything_is_built),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* lab: it works in no database but its own; its failures come every time; what is
 * shipped holds. */
#include <glob.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/lib/private_pg.h"

enum { PLAY_SECONDS = 60 };

static struct private_pg postgres;
static struct fixture f;
static struct fixture_output o;

static int open_world(void **state)
{
    (void)state;
    fixture_open_migrated(&f);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    fixture_close(&f);
    return 0;
}

static const char *redis_server(void)
{
    const char *path = getenv("LEDGERLOCK_TEST_REDIS_SERVER");

    return path != NULL ? path : "redis-server";
}

static void mark(void)
{
    fixture_exec(f.url, "CREATE SCHEMA ledgerlock_lab");
}

static int play(const char *strategy, const char *fault, const char *format)
{
    return fixture_run(&f, &o, "lab", "--redis-server", redis_server(), "--strategy",
                       strategy, "--fault", fault, format, NULL);
}

/* A number of the only cell of the document; of its races with a second name. */
static json_int_t number(const char *name, const char *race)
{
    json_t *doc = json_loads(o.out, 0, NULL), *value;
    json_int_t n;

    assert_non_null(doc);
    value = json_array_get(json_object_get(doc, "cells"), 0);
    value = json_object_get(value, name);
    if (race != NULL)
        value = json_object_get(value, race);
    n = json_integer_value(value);
    json_decref(doc);
    return n;
}

/* ---- where it works ---- */

static void lab_refuses_a_database_that_is_not_marked(void **state)
{
    (void)state;
    assert_int_equal(play("none", "calm", "--json"), 6);
    fixture_assert_contains(o.err, "CREATE SCHEMA ledgerlock_lab");
}

static void lab_refuses_a_schema_with_a_foreign_table(void **state)
{
    (void)state;
    mark();
    fixture_exec(f.url, "CREATE TABLE ledgerlock_lab.mine AS SELECT 1 AS one");
    assert_int_equal(play("none", "calm", "--json"), 6);
    fixture_assert_contains(o.err, "holds mine");
    assert_int_equal(
        fixture_query_int8(f.url, "SELECT count(*) FROM ledgerlock_lab.mine"), 1);
}

static void lab_refuses_a_database_with_users_of_others(void **state)
{
    (void)state;
    mark();
    fixture_exec(f.url, "INSERT INTO ledgerlock.users (currency) VALUES ('USD')");
    assert_int_equal(play("everything", "calm", "--json"), 6);
    fixture_assert_contains(o.err, "createdb");
    assert_int_equal(fixture_query_int8(f.url, "SELECT count(*) FROM ledgerlock.users"),
                     1);
}

static void lab_wrong_name_is_answered_with_all_of_them(void **state)
{
    (void)state;
    mark();
    assert_int_equal(play("redlock", "calm", "--json"), 2);
    fixture_assert_contains(o.err, "setnx-expire, blind-del");
}

/* ---- what comes out ---- */

static void lab_forced_failure_comes_every_time(void **state)
{
    (void)state;
    mark();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(play("get-del", "stopped", "--json"), 0);
        assert_int_equal(number("charged_twice_by_schedule", NULL), 2);
        assert_int_equal(number("charged_twice", NULL), 2);
        assert_int_equal(number("units_oversold", NULL), 2);
    }
}

static void lab_keys_without_end_are_found_stuck(void **state)
{
    (void)state;
    mark();
    assert_int_equal(play("setnx", "killed", "--json"), 0);
    assert_int_equal(number("keys_stuck", NULL), 2);
    assert_int_equal(number("periods_missed", NULL), 6);
}

static void lab_random_redis_fools_fences_but_not_what_is_shipped(void **state)
{
    (void)state;
    mark();
    assert_int_equal(play("ours-fenced", "random", "--json"), 0);
    assert_int_equal(number("charged_twice", NULL), 1);
    assert_int_equal(play("everything", "random", "--json"), 0);
    assert_int_equal(number("charged_twice", NULL), 0);
    assert_int_equal(number("periods_missed", NULL), 0);
}

static void lab_shipped_pool_meets_a_lost_key_and_holds(void **state)
{
    (void)state;
    mark();
    assert_int_equal(play("everything", "flushed", "--json"), 0);
    assert_int_equal(number("charged_twice", NULL), 0);
    assert_int_equal(number("periods_missed", NULL), 0);
    assert_true(number("races", "fenced") > 0);
    assert_true(number("races", "epoch_bumps") > 0);
}

static void lab_shipped_pool_is_not_answered_and_holds(void **state)
{
    (void)state;
    mark();
    assert_int_equal(play("everything", "replies", "--json"), 0);
    assert_int_equal(number("charged_twice", NULL), 0);
    assert_int_equal(number("races", "answers_lost"), 6);
    assert_int_equal(play("everything", "calm", "--json"), 0);
    assert_int_equal(number("races", "answers_lost"), 0);
}

static void lab_says_what_it_skips(void **state)
{
    (void)state;
    mark();
    assert_int_equal(play("token-lua", "clock", "--seed=2"), 0);
    fixture_assert_contains(o.out, "skipped: not given the means");
    fixture_assert_contains(o.out, "0 of 0 cells came out as they must, 1 skipped");
}

static void lab_moves_the_clock_of_redis(void **state)
{
    char shim[512];

    (void)state;
    mark();
    (void)snprintf(shim, sizeof shim, "--clock-shim=%s", fixture_program());
    (void)strcpy(strrchr(shim, '/'), "/libclock_shim.so");
    assert_int_equal(play("token-lua", "clock", shim), 0);
    fixture_assert_contains(o.out, "token-lua     clock           1");
    assert_int_equal(play("setnx", "clock", shim), 0);
    fixture_assert_contains(o.out, "setnx         clock           0");
}

static void lab_leaves_no_folder_behind(void **state)
{
    char pattern[FIXTURE_URL];
    const char *tmp = getenv("TMPDIR");
    glob_t found;

    (void)state;
    mark();
    assert_int_equal(play("token-lua", "promoted", "--json"), 0);
    (void)snprintf(pattern, sizeof pattern, "%s/ledgerlock-lab.*",
                   tmp != NULL ? tmp : "/tmp");
    assert_int_equal(glob(pattern, 0, NULL, &found), GLOB_NOMATCH);
}

/* Starts the server again when the laboratory has crashed it: later than those who
 * stand before their COMMIT have patience. */
static bool keep_postgres(struct fixture_child *child)
{
    for (int left_ms = PLAY_SECONDS * 1000; left_ms > 0; left_ms -= 10) {
        if (waitpid(postgres.pid, NULL, WNOHANG) == postgres.pid) {
            fixture_pause_ms(800);
            postgres.pid = 0;
            private_pg_start(&postgres);
            return true;
        }
        if (kill(child->pid, 0) != 0)
            return false;
        fixture_pause_ms(10);
    }
    return false;
}

static void lab_crashes_postgres_and_what_is_shipped_holds(void **state)
{
    struct fixture_child child;
    char pidfile[160];

    (void)state;
    mark();
    (void)snprintf(pidfile, sizeof pidfile, "%s/data/postmaster.pid", postgres.dir);
    fixture_spawn(&f, &child, "lab", "--redis-server", redis_server(),
                  "--postgres-pidfile", pidfile, "--strategy", "everything", "--fault",
                  "postgres", "--json", NULL);
    assert_true(keep_postgres(&child));
    (void)fixture_wait(&child, PLAY_SECONDS, &o);
    assert_string_equal(o.err, "");
    assert_int_equal(o.code, 0);
    assert_int_equal(number("charged_twice", NULL), 0);
    assert_true(number("races", "commit_unknown") > 0);
}

#define LAB_TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

static int open_postgres(void **state)
{
    const char *tmp = getenv("LEDGERLOCK_TEST_TMP");

    (void)state;
    if (tmp != NULL)
        (void)setenv("TMPDIR", tmp, 1); /* of the laboratory's own folders */
    private_pg_open(&postgres);
    return 0;
}

static int close_postgres(void **state)
{
    (void)state;
    private_pg_close(&postgres);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LAB_TEST(lab_refuses_a_database_that_is_not_marked),
        LAB_TEST(lab_refuses_a_schema_with_a_foreign_table),
        LAB_TEST(lab_refuses_a_database_with_users_of_others),
        LAB_TEST(lab_wrong_name_is_answered_with_all_of_them),
        LAB_TEST(lab_forced_failure_comes_every_time),
        LAB_TEST(lab_keys_without_end_are_found_stuck),
        LAB_TEST(lab_random_redis_fools_fences_but_not_what_is_shipped),
        LAB_TEST(lab_shipped_pool_meets_a_lost_key_and_holds),
        LAB_TEST(lab_shipped_pool_is_not_answered_and_holds),
        LAB_TEST(lab_says_what_it_skips),
        LAB_TEST(lab_moves_the_clock_of_redis),
        LAB_TEST(lab_leaves_no_folder_behind),
        LAB_TEST(lab_crashes_postgres_and_what_is_shipped_holds),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, open_postgres, close_postgres);
}

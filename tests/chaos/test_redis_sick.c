/* Redis is there and of no use: frozen, paused, full, evicting, a replica, busy with a
 * script, loading. Nothing is done without locks, and the pool goes on by itself. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/chaos_world.h"

static const char down[] = "event=pool.redis_down";
static const char up[] = "event=pool.redis_up";

/* The pool says that Redis is of no use, in these words (NULL: any), and does nothing.
 */
static void assert_waits(const char *words)
{
    pool_log_wait(&chaos.pool, down, 5);
    if (words != NULL)
        pool_log_wait(&chaos.pool, words, 1);
    chaos_assert_stands_still(600);
    chaos_assert_midway();
}

static void assert_goes_on(void)
{
    chaos_recovers(40);
    pool_log_wait(&chaos.pool, up, 5);
    assert_int_equal(pool_log_count(&chaos.pool, "event=pool.worker_died"), 0);
    chaos_end();
}

static void redis_frozen_beyond_the_lease_nothing_is_done(void **state)
{
    (void)state;
    chaos_start_midway();
    assert_true(chaos_kill(chaos.redis.pid, SIGSTOP));
    assert_waits(NULL);
    fixture_pause_ms(2 * CHAOS_LEASE_MS);
    assert_true(chaos_kill(chaos.redis.pid, SIGCONT));
    assert_goes_on();
}

static void redis_frozen_by_client_pause_nothing_is_done(void **state)
{
    int64_t until;

    (void)state;
    chaos_start_midway();
    until = pool_now_ms() + 8000;
    chaos_redis_ok("CLIENT PAUSE 8000 ALL");
    assert_waits(NULL);
    while (pool_now_ms() < until)
        fixture_pause_ms(20);
    assert_goes_on();
}

static void redis_full_is_waited_for(void **state)
{
    (void)state;
    chaos_start_midway();
    chaos_redis_ok("CONFIG SET maxmemory 1");
    assert_waits("OOM");
    chaos_redis_ok("CONFIG SET maxmemory 0");
    assert_goes_on();
}

static int64_t evicted(void)
{
    static char info[1 << 14];
    const char *at;

    chaos_redis(info, sizeof info, "INFO stats");
    at = strstr(info, "evicted_keys:");
    assert_non_null(at);
    return strtoll(at + strlen("evicted_keys:"), NULL, 10);
}

/* Locks go without a word, again and again. */
static void redis_evicting_locks_totals_are_exact(void **state)
{
    (void)state;
    chaos_start_midway();
    chaos_redis_ok("CONFIG SET maxmemory-policy allkeys-lru");
    for (int i = 0; i < 10; i++) {
        chaos_redis_ok("CONFIG SET maxmemory 1");
        fixture_pause_ms(20);
        chaos_redis_ok("CONFIG SET maxmemory 0");
        fixture_pause_ms(100);
    }
    chaos_assert_midway();
    assert_true(evicted() > 0);
    chaos_redis_ok("CONFIG SET maxmemory-policy noeviction");
    chaos_recovers(40);
    assert_true(pool_incidents(&chaos.f, "epoch_bump", "") > 0);
    chaos_end();
}

static void redis_evicting_is_refused_at_start(void **state)
{
    static struct fixture_output o;

    (void)state;
    chaos_redis_ok("CONFIG SET maxmemory-policy allkeys-lru");
    assert_int_equal(fixture_run(&chaos.f, &o, "run", "--once", NULL), 6);
    fixture_assert_contains(o.err, "allkeys-lru");
    fixture_assert_contains(o.err, "noeviction");
    assert_int_equal(pool_work_done(&chaos.f), 0);
}

static void redis_demoted_answers_readonly_and_is_waited_for(void **state)
{
    (void)state;
    chaos_start_midway();
    chaos_redis_ok("REPLICAOF 127.0.0.1 1");
    assert_waits("replica");
    chaos_redis_ok("REPLICAOF NO ONE");
    assert_goes_on();
}

/* A command that keeps the server: sent by a process of its own, which it may take with
 * it. */
static pid_t send_aside(const char *command)
{
    char reply[128];
    pid_t pid;

    (void)fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        chaos_redis(reply, sizeof reply, command);
        _exit(0);
    }
    return pid;
}

static void redis_busy_with_a_script_is_waited_for(void **state)
{
    pid_t aside;

    (void)state;
    chaos_redis_ok("CONFIG SET busy-reply-threshold 50");
    chaos_start_midway();
    aside = send_aside("EVAL repeat\tuntil\tfalse 0");
    assert_waits("BUSY");
    chaos_redis_ok("SCRIPT KILL");
    assert_int_not_equal(fixture_reap(aside, 5), -1);
    assert_goes_on();
}

/* It loads its data for some seconds. */
static void redis_loading_is_waited_for(void **state)
{
    pid_t aside;

    (void)state;
    fixture_redis_kill(&chaos.redis);
    chaos_redis_start("--enable-debug-command", "yes");
    chaos_redis_ok("DEBUG POPULATE 4000 filler 100");
    chaos_redis_ok("CONFIG SET loading-process-events-interval-bytes 1024");
    chaos_redis_ok("CONFIG SET key-load-delay 1000");
    chaos_start_midway();
    aside = send_aside("DEBUG RELOAD");
    assert_waits("LOADING");
    assert_int_equal(fixture_reap(aside, 20), 0);
    assert_goes_on();
}

#define SICK_TEST(name) cmocka_unit_test_setup_teardown(name, chaos_open, chaos_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SICK_TEST(redis_frozen_beyond_the_lease_nothing_is_done),
        SICK_TEST(redis_evicting_locks_totals_are_exact),
        SICK_TEST(redis_busy_with_a_script_is_waited_for),
    };
    const struct CMUnitTest more[] = {
        SICK_TEST(redis_frozen_by_client_pause_nothing_is_done),
        SICK_TEST(redis_full_is_waited_for),
        SICK_TEST(redis_evicting_is_refused_at_start),
        SICK_TEST(redis_demoted_answers_readonly_and_is_waited_for),
        SICK_TEST(redis_loading_is_waited_for),
    };

    fixture_need_servers();
    if (chaos_is_full() && cmocka_run_group_tests(more, NULL, NULL) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

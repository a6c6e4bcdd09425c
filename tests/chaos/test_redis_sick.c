/* Redis is there and of no use: frozen, paused, full, evicting, a replica, busy with a
 * script, loading. Nothing is done without locks, and the pool goes on by itself. Or it
 * is killed with -9 and comes back: with an append-only file the locks are there again;
 * from an older snapshot the last token is too old, and tokens rise by the clock. */
#include "tests/lib/fault.h"
#include "tests/lib/steps.h"

FAULT_WORLD(.load = &fault_usual);

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
        fault_redis(reply, sizeof reply, command);
        _exit(0);
    }
    return pid;
}

static void freeze(bool on)
{
    if (!on)
        fixture_pause_ms(2 * FAULT_LEASE_MS);
    assert_true(fault_kill(world.redis.pid, on ? SIGSTOP : SIGCONT));
}

static void pause_clients(bool on)
{
    static int64_t until;

    if (on) {
        until = fixture_now_ms() + 8000;
        fault_redis_ok("CLIENT PAUSE 8000 ALL");
    }
    while (!on && fixture_now_ms() < until)
        fixture_pause_ms(20);
}

static void run_script(bool on)
{
    static pid_t aside;

    if (on)
        aside = send_aside("EVAL repeat\tuntil\tfalse 0");
    else
        fault_redis_ok("SCRIPT KILL");
    if (!on)
        assert_int_not_equal(fixture_reap(aside, 90), -1);
}

/* Redis loads its data for some seconds. */
static void load_slowly(bool on)
{
    static pid_t aside;

    if (on)
        aside = send_aside("DEBUG RELOAD");
    else
        assert_int_equal(fixture_reap(aside, 90), 0);
}

/* Locks go without a word, again and again. */
static void evict(bool on)
{
    static char info[1 << 14];

    fault_redis_ok(on ? "CONFIG SET maxmemory-policy allkeys-lru"
                      : "CONFIG SET maxmemory-policy noeviction");
    for (int i = 0; on && i < 10; i++) {
        gate_feed();
        fault_redis_ok("CONFIG SET maxmemory 1");
        fixture_pause_ms(20);
        fault_redis_ok("CONFIG SET maxmemory 0");
        fixture_pause_ms(100);
    }
    fault_redis(info, sizeof info, "INFO stats");
    assert_non_null(strstr(info, "evicted_keys:"));
    assert_null(strstr(info, "evicted_keys:0\r"));
}

#define IS_WAITED_FOR                                                                  \
    .down = "event=pool.redis_down", .up = "event=pool.redis_up", .is_still = true

#define IS_RARE IS_WAITED_FOR, .is_rare = true

static const struct fault faults[] = {
    {"frozen_beyond_the_lease", freeze, IS_WAITED_FOR},
    {"busy_with_a_script", run_script, IS_WAITED_FOR, .words = "BUSY"},
    {"evicting_locks", evict, .is_shipped = true},
    {"paused", pause_clients, IS_RARE},
    {"full", NULL, "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", IS_RARE,
     .words = "OOM"},
    {"demoted", NULL, "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", IS_RARE,
     .words = "replica"},
    {"loading", load_slowly, IS_RARE, .words = "LOADING"},
};

/* Guarantee: A Redis that is frozen beyond the lease, busy with a script, or evicting
 * midway leaves totals exact; one that pauses its clients, is full, was demoted or is
 * loading its file is waited for. Without an answer nothing is done. */
CASE_ROWS(totals_are_exact_though_redis_is, faults, .when = fault_is_meant)
{
    fixture_redis_kill(&world.redis);
    fault_redis_start("--enable-debug-command", "yes");
    fault_redis_ok("DEBUG POPULATE 4000 filler 100");
    fault_redis_ok("CONFIG SET busy-reply-threshold 50");
    fault_redis_ok("CONFIG SET loading-process-events-interval-bytes 1024");
    fault_redis_ok("CONFIG SET key-load-delay 1000");
    fault_happens(row);
}

/* ---- killed ---- */

/* The lease of the kept locks outlasts a slow restart. */
WORLD_OPEN(open_kept,
           .any = true,
           .points = true,
           .checker = true,
           .redis = true,
           .proxies = true,
           .lease_ms = 60000,
           .poll_ms = 50,
           .batch = 5,
           .load = &fault_small)

static void use_append_only_file(const char *fsync)
{
    fixture_redis_kill(&world.redis);
    fault_redis_start("--appendonly", "yes");
    assert_string_equal(redis_do("CONFIG SET appendfsync %s", fsync), "OK");
}

/* The locks of the workers that stand still are there again, one of them with its nonce
 * and an end; another worker may have got more meanwhile. */
static void assert_locks_are_back(int64_t before, const char *name, const char *value)
{
    assert_true(pool_lock_keys() >= before);
    assert_string_equal(redis_do("GET %s%s", world.f.prefix, name), value);
    assert_in_range(strtoll(redis_do("PTTL %s%s", world.f.prefix, name), NULL, 10), 1,
                    60000);
}

static bool is_written(void)
{
    static char info[1 << 12];

    fault_redis(info, sizeof info, "INFO persistence");
    return strstr(info, "aof_buffer_length:0\r") != NULL;
}

static void assert_orders_are_left(void)
{
    assert_true(world_ask("SELECT count(*) FROM orders WHERE state = 'pending'") > 0);
}

/* The pool says an outage once, and once that it is over. */
static void finish_after_outages(unsigned least)
{
    unsigned n;

    fault_recovers();
    FIXTURE_AWAIT(pool_log_count(&world.pool, "event=pool.redis_up") >= least &&
                      pool_log_count(&world.pool, "event=pool.redis_up") ==
                          pool_log_count(&world.pool, "event=pool.redis_down"),
                  "an outage does not end");
    n = pool_log_count(&world.pool, "event=pool.redis_down");
    assert_in_range(n, least, 1);
    fault_end();
    promise_int_equal(world_parked(), 0);
}

/* Nobody may have asked for a lock while Redis was away. */
static void kill_while_locks_are_held(void)
{
    char name[64], value[96];
    int64_t held;

    proxy_swallow_at(&world.to_postgres, PROXY_AT_BEGIN);
    fault_start("4");
    assert_true(proxy_wait(&world.to_postgres, PROXY_SWALLOWED, 1, 60));
    held = pool_lock_keys();
    assert_true(pool_lock_name(name, sizeof name));
    (void)snprintf(value, sizeof value, "%s",
                   redis_do("GET %s%s", world.f.prefix, name));
    assert_non_null(strchr(value, '|'));
    FIXTURE_AWAIT(is_written(), "no write"); /* everysec: up to two seconds late */
    fixture_redis_kill(&world.redis);
    fault_redis_start("--appendonly", "yes");
    assert_locks_are_back(held, name, value);
    assert_orders_are_left();
    proxy_swallow(&world.to_postgres, false);
    finish_after_outages(0);
}

/* Guarantee: A Redis that comes back from its append-only file (everysec) has its
 * locks, each with an end. */
CASE(redis_killed_with_aof_everysec_locks_are_back, .open = open_kept)
{
    use_append_only_file("everysec");
    kill_while_locks_are_held();
}

/* Guarantee: A Redis that comes back from its append-only file (always) has its
 * locks, each with an end. */
CASE(redis_killed_with_aof_always_locks_are_back,
     .open = open_kept,
     .when = fault_is_full)
{
    use_append_only_file("always");
    kill_while_locks_are_held();
}

/* Guarantee: A Redis that comes back from an older file in the middle of the work
 * gives tokens above every fence. */
CASE(tokens_rise_above_the_fences_after_an_older_snapshot)
{
    int64_t fence;

    fault_as_shipped();
    fault_start_midway();
    fault_redis_ok("SAVE");
    fault_work_wait(300);
    fixture_redis_kill(&world.redis);
    fence = super_ask("SELECT max(fence) FROM ledgerlock.users");
    pool_log_wait(&world.pool, "event=pool.redis_down");
    assert_orders_are_left();
    fault_redis_start("--appendonly", "no");
    finish_after_outages(1);
    assert_true(world_ask("SELECT count(*) FROM users WHERE fence > %" PRId64, fence) >
                0);
}

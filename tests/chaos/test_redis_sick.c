/* Redis is there and of no use: frozen, paused, full, evicting, a replica, busy with a
 * script, loading. Nothing is done without locks, and the pool goes on by itself. */
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

/* It loads its data for some seconds. */
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
        fault_feed();
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

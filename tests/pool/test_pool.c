/* pool: real processes of `ledgerlock run`: drained, killed, orphaned, alone
 * with process 1; and the totals are exact whatever happened. */
#define _GNU_SOURCE /* setns */
#include <fcntl.h>
#include <sched.h>

#include "tests/lib/gate.h"
#include "tests/lib/points.h"
#include "tests/lib/shop.h"
#include "tests/lib/steps.h"

WORLD(.any = true, .lease_ms = 2000, .poll_ms = 100, .batch = 5);

enum { WORKERS = 8 }; /* of a pool with -w 4: four of each job */

static const struct pool_work small = {
    .users = 200, .periods = 3, .orders = 60, .units = 40};
static const struct pool_work large = {
    .users = 200, .periods = 12, .orders = 200, .units = 120};

/* The rest is done by others, and all of it is right. */
static void finish_exactly(void)
{
    gate_open();
    world_runs(0, "run --once -w 4 --batch 500 --now %s", pool_work_now());
    pool_work_assert_exact();
}

/* A pool of eight that is in the middle of its work, where it stays: half of the users
 * are held until gate_open. */
static void start_midway(const struct pool_work *work)
{
    pool_work_put(work);
    gate_shut("user_id % 2 = 0", 12);
    pool_start("run -w 4 --now %s", pool_work_now());
    pool_work_wait(100);
}

/* ---- told to stop ---- */

static const struct {
    const char *name;
    int sig;
    const char *words;
} signals[] = {
    {"term", SIGTERM, "event=pool.draining pid="},
    {"int", SIGINT, "signal=INT grace_ms=8000"},
    {"quit", SIGQUIT, "signal=QUIT grace_ms=8000"},
};

/* Guarantee: A pool that is sent TERM, INT or QUIT finishes its batches, leaves no key
 * and exits 0. */
CASE_ROWS(pool_finishes_its_batches_and_exits_0_after, signals)
{
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "20000"); /* no stall ends it */
    start_midway(&large);
    (void)kill(world.pool.pid, row->sig);
    pool_assert_ends(&world.pool, 0);
    assert_true(pool_work_done() < pool_work_all()); /* it was midway */
    promise_int_equal(pool_lock_keys(), 0);
    pool_logged(1, row->words);
    pool_logged(0, "event=pool.killed");
    assert_int_equal(pool_incidents("lost", ""), 0);
    finish_exactly();
}

/* Guarantee: A pool that always has more to do finishes its batches, too, and exits 0.
 */
CASE(pool_with_much_to_do_hears_a_signal)
{
    static const struct pool_work vast = {
        .users = 200, .periods = 400, .orders = 60, .units = 40};

    pool_work_put(&vast);
    pool_start("run -w 4 --batch 1 --now %s", pool_work_now());
    pool_work_wait(100);
    (void)kill(world.pool.pid, SIGTERM);
    pool_assert_ends(&world.pool, 0);
    assert_true(pool_work_done() < pool_work_all()); /* it was midway */
    pool_logged(0, "event=pool.killed");
    promise_int_equal(pool_lock_keys(), 0);
}

/* As when their leases are over. */
static void remove_keys(void)
{
    char name[64];

    while (pool_lock_name(name, sizeof name))
        (void)redis_do("DEL %s%s", world.f.prefix, name);
}

/* A client holds the table of batches, so that every batch hangs in its effects. */
/* Guarantee: A pool that is sent a second signal ends at once; its keys end with
 * their leases. */
CASE(pool_after_second_signal_ends_at_once, .close = shop_close)
{
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "120000"); /* it hangs up to 30 s */
    start_midway(&large);
    shop_hold("LOCK TABLE batches IN SHARE MODE");
    gate_feed(); /* for a batch */
    world_wait_blocked();
    (void)kill(world.pool.pid, SIGTERM);
    pool_log_wait(&world.pool, "event=pool.draining");
    assert_true(pool_is_alive(world.pool.pid)); /* it waits for the batch in flight */
    (void)kill(world.pool.pid, SIGTERM);
    assert_int_not_equal(fixture_reap(world.pool.pid, 90), -1);
    pool_logged(1, "event=pool.stopping_at_once");
    world.pool.pid = 0;
    shop_let_go();
    assert_true(pool_lock_keys() > 0); /* left to their leases */
    remove_keys();
    finish_exactly();
}

/* Nobody replaces it, and the pool itself did not kill it. */
/* Guarantee: A worker that dies while its pool ends is told, and the next pool works
 * its batch. */
CASE(worker_that_dies_while_its_pool_ends_is_told, .close = shop_close)
{
    pid_t victim;

    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "120000");
    start_midway(&large);
    shop_hold("LOCK TABLE batches IN SHARE MODE");
    gate_feed();
    world_wait_blocked();
    victim = pool_workers(WORKERS);
    (void)kill(victim, SIGSTOP); /* it cannot end by itself before it is killed */
    (void)kill(world.pool.pid, SIGTERM);
    pool_log_wait(&world.pool, "event=pool.draining");
    (void)kill(victim, SIGKILL);
    pool_log_wait(&world.pool, "event=pool.worker_died");
    shop_let_go();
    pool_assert_ends(&world.pool, 0);
    pool_logged(1, " signal=9 note=");
    remove_keys();
    finish_exactly();
}

/* ---- killed ---- */

/* Kills the first worker; waits until there are as many as before. */
static bool is_replaced(pid_t victim)
{
    pid_t pids[POOL_CHILDREN];
    size_t n = pool_children(world.pool.pid, pids);

    return n == WORKERS && !pool_has(pids, n, victim);
}

static void kill_one_and_await_another(void)
{
    pid_t victim = pool_workers(WORKERS);

    (void)kill(victim, SIGKILL);
    FIXTURE_AWAIT(is_replaced(victim), "worker %ld was not replaced", (long)victim);
}

/* At once: the log says how long the pool pauses before. The last one has nothing to
 * do when it is killed. */
/* Guarantee: A worker that is killed, at work or with nothing to do, is replaced within
 * a second, and new work is done. */
CASE(worker_killed_is_replaced_within_a_second)
{
    start_midway(&large);
    for (int i = 0; i < 3; i++) {
        gate_feed();
        pool_work_wait(pool_work_done() + 10);
        kill_one_and_await_another();
    }
    gate_open();
    pool_work_wait(pool_work_all());
    pool_work_assert_exact();
    FIXTURE_AWAIT(pool_lock_keys() == 0, "a key stays");
    kill_one_and_await_another();
    pool_logged(4, "event=pool.worker_died");
    pool_logged(4, " signal=9 restart_in_ms=0\n");
    super_do(
        "SELECT ledgerlock.place_order(7, 'new', '[{\"sku\": \"hot\", \"qty\": 1}]',"
        " '2024-01-01Z')");
    pool_work_wait(pool_work_all() + 1);
    pool_stop();
    assert_int_equal(pool_counter("restarts"), 4);
}

/* Guarantee: A killed supervisor takes its workers with it, and
 * the next pool does the rest once. */
CASE(supervisor_killed_takes_its_workers_with_it)
{
    pid_t pids[POOL_CHILDREN];

    start_midway(&large);
    assert_int_equal(pool_children(world.pool.pid, pids), WORKERS);
    gate_feed();
    world_kill(&world.pool);
    for (size_t i = 0; i < WORKERS; i++)
        FIXTURE_AWAIT(!pool_is_alive(pids[i]), "worker %ld lives", (long)pids[i]);
    finish_exactly();
}

/* ---- process 1 ---- */

static bool may_unshare(void)
{
    return system("unshare --pid --fork --mount-proc true 2>/dev/null") == 0;
}

/* Runs the pool as process 1 of a namespace of its own; returns its pid out here. */
static pid_t start_as_process_1(void)
{
    char wrapper[64], text[4400];
    pid_t pids[POOL_CHILDREN] = {0};

    (void)snprintf(text, sizeof text,
                   "#!/bin/sh\nexec unshare --pid --fork --mount-proc --kill-child "
                   "'%s' \"$@\"\n",
                   fixture_program());
    fixture_file(wrapper, sizeof wrapper, text, 0700);
    points_use(wrapper);
    pool_start("run -w 1 --now %s", pool_work_now());
    points_as_shipped();
    pool_log_wait(&world.pool, "event=pool.started pid=1 ");
    (void)unlink(wrapper);
    assert_int_equal(pool_children(world.pool.pid, pids), 1);
    return pids[0];
}

/* A process in the pool's namespace whose parent is gone: process 1 gets it. Returns
 * what it waits for: it ends when this is closed. */
static int plant_orphan(pid_t process_1)
{
    char path[64], byte;
    int way[2];
    pid_t helper;

    assert_int_equal(pipe(way), 0);
    helper = fork();
    assert_true(helper >= 0);
    if (helper == 0) {
        (void)snprintf(path, sizeof path, "/proc/%ld/ns/pid", (long)process_1);
        if (setns(open(path, O_RDONLY), CLONE_NEWPID) != 0)
            _exit(1);
        helper = fork();
        if (helper == 0 && fork() == 0) {
            (void)close(way[1]);
            (void)!read(way[0], &byte, 1);
        } else if (helper > 0)
            (void)waitpid(helper, NULL, 0);
        _exit(0);
    }
    assert_int_equal(fixture_reap(helper, 90), 0);
    (void)close(way[0]);
    return way[1];
}

CASE(pool_as_process_1_reaps_orphans_and_obeys_term)
{
    pid_t process_1;
    int orphan;

    if (!may_unshare()) {
        print_message("SKIPPED: a namespace of its own is not allowed here, so nothing "
                      "is known of the pool as process 1\n");
        skip();
    }
    pool_work_put(&small);
    process_1 = start_as_process_1();
    pool_wait_children(process_1, 2);
    orphan = plant_orphan(process_1);
    pool_wait_children(process_1, 3); /* adopted */
    (void)close(orphan);
    pool_wait_children(process_1, 2); /* reaped: a zombie would stay in the list */
    pool_work_wait(pool_work_all());
    (void)kill(process_1, SIGTERM);
    pool_assert_ends(&world.pool, 0);
    pool_logged(0, "event=pool.worker_died");
    pool_work_assert_exact();
}

/* ---- once ---- */

CASE(once_with_nothing_due_ends_without_a_pause)
{
    fixture_env("LEDGERLOCK_POOL_BILLING_POLL_MS", "60000");
    world_user(1, 100);
    world_subscription(1, 1, 100, "2024-01-01Z");
    world_run_pool("4", "2023-12-31T00:00:00Z");
    world_expect("active 0 0",
                 "SELECT concat_ws(' ', state, next_period_no, fence) FROM"
                 " subscriptions JOIN users USING (user_id)");
}

CASE(once_waits_for_what_others_hold_and_then_returns)
{
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "60000"); /* it waits for three */
    pool_work_put(&small);
    assert_string_equal(redis_do("SET %suser:7 another NX PX 600000", world.f.prefix),
                        "OK");
    pool_start("run --once --now %s", pool_work_now());
    pool_work_wait(pool_work_all() - small.periods - 1);
    FIXTURE_AWAIT(pool_counter("busy") > 0, "no key was busy");
    assert_true(pool_is_alive(world.pool.pid));
    assert_int_equal(pool_work_done(), pool_work_all() - small.periods - 1);
    (void)redis_do("DEL %suser:7", world.f.prefix);
    pool_assert_ends(&world.pool, 0);
    assert_int_equal(pool_work_done(), pool_work_all());
    finish_exactly();
}

/* Guarantee: A pool that starts forgets workers that reported nothing for a day. */
CASE(workers_of_old_pools_are_forgotten)
{
    world_do("INSERT INTO workers (pool, slot, job, host, pid, started_at, seen_at,"
             " counters) SELECT name, 0, 'billing', 'h', 1, now() - interval '2 days',"
             " now() - ago, '{}' FROM (VALUES ('old', interval '25 hours'), ('young',"
             " interval '23 hours')) AS t (name, ago)");
    pool_work_put(&small);
    finish_exactly();
    world_expect("young", "SELECT string_agg(pool, ' ') FROM workers WHERE pool IN"
                          " ('old', 'young')");
}

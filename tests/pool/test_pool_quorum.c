/* pool: its locks are held on a quorum of three servers, or of five. A server is
 * killed, wiped or stopped in the middle of the work, or two of five are: the pool goes
 * on meanwhile and the totals are exact. */

#include "common/lock/lock.h"
#include "tests/lib/fault.h"
#include "tests/lib/hand.h"
#include "tests/lib/steps.h"
#include "worker/batch/batch.h"

enum { SERVERS = 3, MORE = 5, LEASE_MS = 2000, WORKERS = 8 };

static struct fixture_redis servers[MORE];
static size_t server_ct = SERVERS;

static void restart_servers(void)
{
    for (size_t i = 0; i < server_ct; i++) {
        fixture_redis_kill(&servers[i]);
        fixture_redis_start(&servers[i], NULL);
    }
}

static void prepare(void)
{
    char *at = world.f.redis_url;

    fixture_env("LEDGERLOCK_REDIS_MAX_LEASE_MS", "2000");
    for (size_t i = 0; i < server_ct; i++) {
        fixture_redis_start(&servers[i], NULL);
        at += snprintf(at, (size_t)(world.f.redis_url + sizeof world.f.redis_url - at),
                       "%s%s", i == 0 ? "" : ",", servers[i].url);
    }
    world.through = world.f;
}

static void undo(void)
{
    for (size_t i = 0; i < server_ct; i++) {
        if (servers[i].pid > 0)
            (void)kill(servers[i].pid, SIGCONT);
        fixture_redis_close(&servers[i]);
    }
    server_ct = SERVERS;
    (void)snprintf(world.f.redis_url, sizeof world.f.redis_url, "%s",
                   getenv("LL_TEST_REDIS"));
}

static void prepare_more(void)
{
    server_ct = MORE;
    prepare();
}

#define PLAN                                                                           \
    .any = true, .points = true, .checker = true, .lease_ms = LEASE_MS, .poll_ms = 50, \
    .batch = 5, .load = &fault_usual, .undo = undo
WORLD(PLAN, .also = prepare);
WORLD_OPEN(open_more, PLAN, .also = prepare_more)

#define MICROSECONDS(time) "SELECT (extract(epoch FROM " time ") * 1000000)::bigint"

/* Guarantee: New servers of a quorum are waited for, which is no fault. */
CASE(new_servers_are_waited_for_and_that_is_no_fault)
{
    int64_t restarted_us;

    fixture_env("LEDGERLOCK_REDIS_MAX_LEASE_MS", "8000");
    restarted_us = world_ask(MICROSECONDS("clock_timestamp()"));
    restart_servers(); /* with the pool: later they would not be new to it */
    fault_start("4");
    pool_log_wait(&world.pool, "event=pool.redis_waits");
    pool_log_wait(&world.pool, "must wait another");
    pool_log_wait(&world.pool, "event=pool.redis_grants");
    fault_recovers();
    fault_end();
    /* A server tells its uptime in whole seconds. */
    promise_true(world_ask(MICROSECONDS("min(recorded_at)") " FROM batches") >=
                 restarted_us + 7000000);
    pool_logged(0, "event=pool.redis_down");
    /* Said by the pool and not by its workers; again by one that asks late. */
    assert_in_range(pool_log_count(&world.pool, "event=pool.redis_waits"), 1, WORKERS);
    assert_int_equal(pool_incidents("uncertain", ""), 0);
}

static bool serves_nothing_early(struct hand *h)
{
    struct err e = {0};

    assert_int_equal(standby_check(&h->s, &e), ERR_REDIS);
    assert_memory_equal(e.msg, h->s.is_early ? "LL-4003" : "LL-4002", 7);
    return h->s.is_early;
}

/* Guarantee: A worker behind a transaction pooler, too, tells servers of a quorum that
 * grant nothing yet from servers that are away. */
CASE(pooled_worker_tells_new_servers_from_servers_that_are_away)
{
    HAND h;

    restart_servers();
    hand_open(&h, LEASE_MS);
    h.config.transaction_pooling = true;
    h.s.job = &job_orders;
    assert_true(serves_nothing_early(&h));
    for (size_t i = 0; i < server_ct; i++)
        fixture_redis_kill(&servers[i]);
    FIXTURE_AWAIT(!serves_nothing_early(&h), "servers that are away count as new");
}

static void kill_one(bool on)
{
    if (on)
        fixture_redis_kill(&servers[0]);
    else
        fixture_redis_start(&servers[0], NULL);
}

/* A lock that only these servers and one more had granted may go to another worker. */
static void wipe(size_t n)
{
    char reply[32];

    for (size_t i = 0; i < 5 * n; i++) {
        checker_mark("forgot", 0, 0);
        pool_redis(servers[1 + i % n].url, reply, sizeof reply, "FLUSHALL");
        assert_string_equal(reply, "OK");
        fixture_pause_ms(50);
    }
}

static void wipe_one(bool on)
{
    wipe(on ? 1 : 0);
}

static void wipe_two(bool on)
{
    wipe(on ? 2 : 0);
}

static void stop_one(bool on)
{
    (void)kill(servers[2].pid, on ? SIGSTOP : SIGCONT);
}

static void lose_two(bool on)
{
    kill_one(on);
    stop_one(on);
}

static void stop_all(bool on)
{
    for (size_t i = 0; i < server_ct; i++)
        (void)kill(servers[i].pid, on ? SIGSTOP : SIGCONT);
}

static const struct fault faults[] = {
    {"one_server_is_killed", .set = kill_one, .done = 300},
    {"one_server_is_wiped", .set = wipe_one, .done = 300},
    {"one_server_is_stopped", .set = stop_one, .done = 300},
    {"all_servers_are_away", .set = stop_all, .down = "event=pool.redis_down",
     .up = "event=pool.redis_up", .is_still = true},
};

/* Guarantee: One server of three of a quorum is killed, wiped or stopped: the pool is
 * served and exact. All are away: nothing is charged, and it goes on by itself. */
CASE_ROWS(pool_is_exact_though, faults)
{
    fault_happens(row);
    assert_in_range(pool_log_count(&world.pool, "event=pool.redis_up"), 0,
                    pool_log_count(&world.pool, "event=pool.redis_down"));
}

static const struct fault faults_of_five[] = {
    {"one_is_killed_and_one_is_stopped", .set = lose_two, .done = 300},
    {"two_are_wiped", .set = wipe_two, .done = 300},
};

/* Guarantee: Two servers of five of a quorum are lost, or are wiped: the pool is served
 * and exact. */
CASE_ROWS(pool_on_five_servers_is_exact_though,
          faults_of_five,
          .every = 2,
          .open = open_more)
{
    fault_happens(row);
    assert_in_range(pool_log_count(&world.pool, "event=pool.redis_up"), 0,
                    pool_log_count(&world.pool, "event=pool.redis_down"));
}

/* Taken until it is on all servers, which do not begin to grant at the same moment,
 * with the same token: a server that grants when a majority has done so makes its own.
 */
static void hold_everywhere(struct rlock *l)
{
    const struct rlock_key key = {"user:42", strlen("user:42")};
    int64_t until_ms = fixture_now_ms() + POOL_WAIT_MS;

    for (;;) {
        assert_int_equal(rlock_acquire_wait(l, &key, 1, RLOCK_ALL, LEASE_MS, 10000, -1),
                         RLOCK_OK);
        runs(&world.f, 0, "locks --json");
        assert_in_range(said_number("locks"), 0, 1);
        if (said_number("locks") > 0 && said_number("locks/0/servers") == SERVERS &&
            said_number("locks/0/token") == (double)rlock_token(l))
            return;
        assert_true(fixture_now_ms() < until_ms);
        assert_int_equal(rlock_release(l), RLOCK_OK);
    }
}

CASE(lock_on_a_quorum_is_listed_once_and_released_everywhere)
{
    struct rlock_options options = {.size = sizeof options,
                                    .url = world.f.redis_url,
                                    .prefix = world.f.prefix,
                                    .max_lease_ms = LEASE_MS};
    struct rlock_client *c;
    struct rlock *l;

    assert_int_equal(rlock_open(&c, &options, NULL, 0), RLOCK_OK);
    l = rlock_new(c);
    hold_everywhere(l);
    assert_string_equal(said_text("locks/0/key"), "user:42");
    world_runs(0, "locks release user:42 --yes");
    do /* the last server may answer when the command has a majority, and is gone */
        world_runs(0, "locks");
    while (strstr(said.out, "0 held") == NULL);
    assert_int_equal(rlock_release(l), RLOCK_GONE);
    rlock_free(l);
    rlock_close(c);
}

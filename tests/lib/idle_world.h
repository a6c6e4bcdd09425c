/* idle_world: a pool with nothing to do, a client at the door, and how long that one
 * waits. For the tests that include it: each has its own world. */
#ifndef LEDGERLOCK_IDLE_WORLD_H
#define LEDGERLOCK_IDLE_WORLD_H

#include <inttypes.h>
#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/lib/pool_world.h"

#ifdef __SANITIZE_ADDRESS__
enum { NOTIFIED_MS = 400 };
#else
enum { NOTIFIED_MS = 50 };
#endif
enum { ORDERS = 9, LONG_POLL_MS = 10000 };

static struct fixture f;
static struct fixture_child pool;
static char owner[FIXTURE_URL];
static PGconn *door;

/* Users with money and units enough, nothing due; a client at the door. */
static int open_world(void **state)
{
    static const struct pool_work work = {.users = 20, .units = 100000};

    (void)state;
    fixture_open_migrated(&f);
    (void)snprintf(owner, sizeof owner, "%s", f.url);
    pool_work_put(&f, &work);
    fixture_become(&f, "ledgerlock_worker");
    door = PQconnectdb(owner);
    assert_int_equal(PQstatus(door), CONNECTION_OK);
    return 0;
}

static void kill_pool(struct fixture_child *child)
{
    if (child->pid > 0) {
        (void)kill(child->pid, SIGCONT);
        (void)kill(child->pid, SIGKILL);
        (void)waitpid(child->pid, NULL, 0);
    }
    memset(child, 0, sizeof *child);
}

static int close_world(void **state)
{
    (void)state;
    PQfinish(door);
    kill_pool(&pool);
    fixture_close(&f);
    return 0;
}

static int64_t ask(const char *sql)
{
    PGresult *res = PQexec(door, sql);
    int64_t answer;

    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(door));
    answer = strcmp(PQgetvalue(res, 0, 0), "t") == 0
                 ? 1
                 : strtoll(PQgetvalue(res, 0, 0), NULL, 10);
    PQclear(res);
    return answer;
}

static inline void command(const char *sql)
{
    PGresult *res = PQexec(door, sql);

    if (PQresultStatus(res) != PGRES_COMMAND_OK &&
        PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(door));
    PQclear(res);
}

static const char asks_the_doors[] =
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND mode = "
    "'ExclusiveLock' AND database = (SELECT oid FROM pg_database WHERE datname = "
    "current_database())";

/* Until the listener holds both its locks and the workers sleep again. */
static void wait_asleep(void)
{
    for (int i = 0; ask(asks_the_doors) != 2; i++) {
        if (i == 1000)
            fail_msg("the listener does not ask the doors");
        fixture_pause_ms(10);
    }
    fixture_pause_ms(50);
}

static void start_pool(struct fixture_child *child, const char *poll_ms, const char *on)
{
    fixture_spawn(&f, child, "run", "-w", "4", "--poll-ms", poll_ms, "--notify", on,
                  NULL);
    pool_log_wait(child, "event=pool.started", 5);
}

static inline void start_sleeping(struct fixture_child *child)
{
    start_pool(child, "10000", "on");
    wait_asleep();
}

static void stop_pool(void)
{
    (void)kill(pool.pid, SIGTERM);
    pool_assert_ends(&pool, 0, 10);
    assert_int_equal(pool_log_count(&pool, "level=error"), 0);
}

/* ---- how soon ---- */

static int64_t place(void)
{
    static int count;
    char sql[160];

    (void)snprintf(sql, sizeof sql,
                   "SELECT ledgerlock.place_order(%d, 'idle%d', '[{\"sku\": \"hot\", "
                   "\"qty\": 1}]')",
                   1 + count % 20, count);
    count++;
    return ask(sql);
}

/* From now until the query answers 1. */
static int64_t await(const char *sql, int64_t limit_ms)
{
    int64_t at = pool_now_ms();

    while (ask(sql) != 1) {
        if (pool_now_ms() - at > limit_ms)
            fail_msg("not within %" PRId64 " ms: %s", limit_ms, sql);
        fixture_pause_ms(1);
    }
    return pool_now_ms() - at;
}

static int64_t await_order(int64_t id, int64_t limit_ms)
{
    char sql[128];

    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM ledgerlock.orders WHERE order_id = %" PRId64
                   " AND state = 'fulfilled'",
                   id);
    return await(sql, limit_ms);
}

static int compare(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Places some orders, each into a pool that sleeps, and asserts that the fastest of
 * them waited at most so long, and half of them not much longer: the machine is shared.
 */
static inline void assert_waits(int64_t most_ms, int64_t limit_ms, long pause_ms)
{
    int64_t waits[ORDERS];

    for (size_t i = 0; i < ORDERS; i++) {
        waits[i] = await_order(place(), limit_ms);
        fixture_pause_ms(pause_ms);
    }
    qsort(waits, ORDERS, sizeof waits[0], compare);
    print_message("waited %" PRId64 " to %" PRId64 " ms, median %" PRId64 "\n",
                  waits[0], waits[ORDERS - 1], waits[ORDERS / 2]);
    assert_in_range(waits[0], 0, most_ms);
    assert_in_range(waits[ORDERS / 2], 0, 4 * most_ms);
}

#endif

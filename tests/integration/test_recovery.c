/* recovery: how long the rows of a worker that is killed wait until they are worked
 * again. LEDGERLOCK_TEST_KILLS says how often; scripts/recovery asks for a hundred.
 * LEDGERLOCK_TEST_RECOVERY, "seen" or "unseen": only that. */
#include <inttypes.h>
#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/lib/crash_world.h"

enum { LEASE_MS = 2000, BOUND_MS = 1000, KILLS_MAX = 1000 };

static struct fixture f;
static struct fixture_child pool, second;
static PGconn *eye; /* one session, so that looking costs little */
static int64_t waited[KILLS_MAX];

static size_t kills(void)
{
    const char *text = getenv("LEDGERLOCK_TEST_KILLS");
    long n = text != NULL ? strtol(text, NULL, 10) : 4;

    return n > 0 && n <= KILLS_MAX ? (size_t)n : 4;
}

/* Skips the test unless it is asked for. */
static void need(const char *name)
{
    const char *only = getenv("LEDGERLOCK_TEST_RECOVERY");

    if (only != NULL && only[0] != '\0' && strcmp(only, name) != 0)
        skip();
}

/* ---- the world ---- */

static void open_world(const char *lease_ms, const char *poll_ms)
{
    char url[FIXTURE_URL];

    crash_open(&f, lease_ms);
    fixture_env("LEDGERLOCK_POOL_POLL_MS", poll_ms);
    fixture_env("LEDGERLOCK_POOL_QUARANTINE_AFTER", "3");
    fixture_url_as(&f, "postgres", url, sizeof url);
    eye = PQconnectdb(url);
    assert_int_equal(PQstatus(eye), CONNECTION_OK);
}

/* The supervisor sees the death: the lease is long, and not waited for. */
static int open_long(void **state)
{
    (void)state;
    open_world("10000", "1000");
    return 0;
}

/* Nobody sees it. */
static int open_short(void **state)
{
    (void)state;
    open_world("2000", "1000");
    return 0;
}

static void end(struct fixture_child *child)
{
    if (child->pid > 0) {
        (void)kill(child->pid, SIGKILL);
        (void)waitpid(child->pid, NULL, 0);
    }
    memset(child, 0, sizeof *child);
}

static int close_world(void **state)
{
    (void)state;
    end(&pool);
    end(&second);
    PQfinish(eye);
    fixture_close(&f);
    return 0;
}

/* ---- one kill ---- */

static int64_t look(const char *sql)
{
    PGresult *res = PQexec(eye, sql);
    int64_t n;

    assert_int_equal(PQresultStatus(res), PGRES_TUPLES_OK);
    n = strtoll(PQgetvalue(res, 0, 0), NULL, 10);
    PQclear(res);
    return n;
}

/* A user with a subscription that is due now and that a worker will hang on. */
static void put_due(int64_t id)
{
    char sql[1024], url[FIXTURE_URL];

    crash_slow(&f, "billing", id);
    (void)snprintf(
        sql, sizeof sql,
        "SET search_path = ledgerlock; INSERT INTO users (user_id, currency) VALUES"
        " (%" PRId64 ", 'USD'); SELECT deposit(%" PRId64 ", 1, 1000); INSERT INTO"
        " subscriptions (subscription_id, user_id, plan, amount_minor, currency,"
        " anchor_at, unit, every, next_due_at) VALUES (%" PRId64 ", %" PRId64
        ", 'p', 100, 'USD', now(), 'year', 1, now())",
        id, id, id, id);
    fixture_url_as(&f, "ledgerlock_owner", url, sizeof url);
    fixture_exec(url, sql);
}

static void assert_locked(int64_t id)
{
    char command[160], reply[32];

    (void)snprintf(command, sizeof command, "EXISTS %suser:%" PRId64, f.prefix, id);
    pool_redis(f.redis_url, reply, sizeof reply, command);
    assert_string_equal(reply, "1");
}

/* Milliseconds from the kill until the row's charge is committed. */
static int64_t wait_charged(int64_t id, int64_t killed_ms)
{
    char sql[128];

    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM ledgerlock.charges WHERE subscription_id ="
                   " %" PRId64,
                   id);
    while (look(sql) == 0) {
        if (pool_now_ms() > killed_ms + 30000)
            fail_msg("subscription %" PRId64 " was not worked within 30 s", id);
        fixture_pause_ms(1);
    }
    return pool_now_ms() - killed_ms;
}

/* Kills whoever hangs on the row, with its keys in its hand. */
static int64_t kill_holder(int64_t id, pid_t of)
{
    pid_t worker = crash_wait_hanging(&f, of);

    crash_not_slow(&f, "billing", id);
    assert_locked(id);
    assert_int_equal(kill(worker, SIGKILL), 0);
    return pool_now_ms();
}

/* ---- many ---- */

static int compare(const void *a, const void *b)
{
    int64_t l = *(const int64_t *)a, r = *(const int64_t *)b;

    return l < r ? -1 : l > r;
}

static void report(const char *what, size_t n, int64_t bound_ms)
{
    qsort(waited, n, sizeof waited[0], compare);
    print_message("recovery %s: kills=%zu p50_ms=%" PRId64 " max_ms=%" PRId64
                  " bound_ms=%" PRId64 "\n",
                  what, n, waited[n / 2], waited[n - 1], bound_ms);
    assert_true(waited[n - 1] <= bound_ms);
}

static void worker_seen_to_die_is_made_up_for_within_a_second(void **state)
{
    (void)state;
    need("seen");
    fixture_spawn(&f, &pool, "run", "-w", "2", NULL);
    for (size_t i = 0; i < kills(); i++) {
        int64_t id = (int64_t)i + 1;

        put_due(id);
        waited[i] = wait_charged(id, kill_holder(id, pool.pid));
        pool_wait_children(pool.pid, 2, 5);
    }
    assert_int_equal(pool_log_count(&pool, "event=worker.rescued"), kills());
    report("seen", kills(), BOUND_MS);
}

/* A pool of its own works the row and is killed as a whole, while the other stands
 * still so that it cannot be first. */
static int64_t kill_pool_over(int64_t id, pid_t other)
{
    pid_t worker;
    int64_t killed_ms;

    assert_int_equal(kill(other, SIGSTOP), 0);
    fixture_spawn(&f, &pool, "run", "-w", "1", NULL);
    put_due(id);
    worker = crash_wait_hanging(&f, pool.pid);
    crash_not_slow(&f, "billing", id);
    assert_int_equal(kill(other, SIGCONT), 0);
    assert_locked(id);
    (void)kill(pool.pid, SIGKILL);
    (void)kill(worker, SIGKILL);
    killed_ms = pool_now_ms();
    end(&pool);
    return killed_ms;
}

static void pool_killed_is_made_up_for_within_its_lease_and_a_second(void **state)
{
    pid_t other[POOL_CHILDREN];

    (void)state;
    need("unseen");
    fixture_spawn(&f, &second, "run", "-w", "1", NULL);
    pool_wait_children(second.pid, 1, 5);
    assert_int_equal(pool_children(second.pid, other), 1);
    for (size_t i = 0; i < kills(); i++) {
        int64_t id = (int64_t)i + 1;

        waited[i] = wait_charged(id, kill_pool_over(id, other[0]));
    }
    report("unseen", kills(), LEASE_MS + BOUND_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            worker_seen_to_die_is_made_up_for_within_a_second, open_long, close_world),
        cmocka_unit_test_setup_teardown(
            pool_killed_is_made_up_for_within_its_lease_and_a_second, open_short,
            close_world),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

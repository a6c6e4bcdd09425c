/* What the lock is for: a counter in PostgreSQL that is read, then written, by sixteen
 * processes, and loses nothing. LEDGERLOCK_TEST_TURNS sets how many turns (200000 for
 * the full number). */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "tests/lib/lock_world.h"

#include <libpq-fe.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES = 16, DEFAULT_TURNS = 20000, KEYS_MOST = 4 };

static struct fixture f;
static char url[FIXTURE_URL]; /* of the superuser: no role needs the table */

/* What the processes tell each other. */
struct shared {
    atomic_int busy;              /* found held at the first look */
    atomic_int inside[KEYS_MOST]; /* holders of each key */
    atomic_int overlaps;          /* two holders at once */
    _Atomic int64_t last_token[KEYS_MOST];
    atomic_int older_tokens; /* a tenure whose token was not above all before */
};

/* One run: so many turns over so many keys. */
struct run {
    struct shared *shared;
    int turns; /* of each process */
    int keys;
    bool with_lock;
};

/* ---- one turn ---- */

static PGconn *connect_pg(void)
{
    PGconn *pg = PQconnectdb(url);
    const char *statements[] = {"SELECT n FROM counter WHERE k = $1::int",
                                "UPDATE counter SET n = $2::bigint WHERE k = $1::int"};

    PQclear(PQexec(pg, "SET synchronous_commit = off"));
    PQclear(PQprepare(pg, "read", statements[0], 0, NULL));
    PQclear(PQprepare(pg, "write", statements[1], 0, NULL));
    return PQstatus(pg) == CONNECTION_OK ? pg : NULL;
}

static bool read_and_write(PGconn *pg, int k)
{
    char key[16], value[24];
    const char *params[] = {key, value};
    PGresult *result;
    bool ok;

    (void)snprintf(key, sizeof key, "%d", k);
    result = PQexecPrepared(pg, "read", 1, params, NULL, NULL, 0);
    ok = PQntuples(result) == 1;
    if (ok)
        (void)snprintf(value, sizeof value, "%lld",
                       strtoll(PQgetvalue(result, 0, 0), NULL, 10) + 1);
    PQclear(result);
    if (!ok)
        return false;
    result = PQexecPrepared(pg, "write", 2, params, NULL, NULL, 0);
    ok = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    return ok;
}

static bool locked_turn(struct shared *s, struct ll_lock *l, PGconn *pg, int k)
{
    char name[16];
    struct ll_key key = {name, (size_t)snprintf(name, sizeof name, "counter:%d", k)};
    int code = ll_acquire(l, &key, 1, LL_ALL, 20000);
    bool ok;

    if (code == LL_BUSY) {
        (void)atomic_fetch_add(&s->busy, 1);
        code = ll_acquire_wait(l, &key, 1, LL_ALL, 20000, 60000);
    }
    if (code != LL_OK)
        return false;
    if (atomic_fetch_add(&s->inside[k], 1) != 0)
        (void)atomic_fetch_add(&s->overlaps, 1);
    if (atomic_exchange(&s->last_token[k], ll_token(l)) >= ll_token(l))
        (void)atomic_fetch_add(&s->older_tokens, 1);
    ok = read_and_write(pg, k);
    (void)atomic_fetch_sub(&s->inside[k], 1);
    return ll_release(l) == LL_OK && ok;
}

static int work(const struct run *r, int id)
{
    struct ll_client *c = lock_client(lock_server.url, 0);
    struct ll_lock *l = ll_new(c);
    PGconn *pg = connect_pg();
    bool ok = pg != NULL;

    for (int i = 0; ok && i < r->turns; i++) {
        int k = (i + id) % r->keys;

        ok = r->with_lock ? locked_turn(r->shared, l, pg, k) : read_and_write(pg, k);
    }
    if (!ok)
        (void)fprintf(stderr, "%s%s\n", ll_error(c), PQerrorMessage(pg));
    PQfinish(pg);
    ll_free(l);
    ll_close(c);
    return ok ? 0 : 1;
}

/* ---- one run ---- */

/* Returns how many increments are missing. */
static int64_t run_all(struct run *r)
{
    pid_t pids[PROCESSES];
    struct timespec began, ended;
    double seconds;

    fixture_exec(url, "UPDATE counter SET n = 0");
    (void)clock_gettime(CLOCK_MONOTONIC, &began);
    (void)fflush(NULL);
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(work(r, i));
    }
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(fixture_reap(pids[i], 600), 0);
    (void)clock_gettime(CLOCK_MONOTONIC, &ended);
    seconds = (double)(ended.tv_sec - began.tv_sec) +
              (double)(ended.tv_nsec - began.tv_nsec) / 1e9;
    print_message("%d turns of %d processes on %d keys in %.1f s (%.0f/s), %d found it "
                  "held\n",
                  r->turns * PROCESSES, PROCESSES, r->keys, seconds,
                  r->turns * PROCESSES / seconds, atomic_load(&r->shared->busy));
    return (int64_t)r->turns * PROCESSES -
           fixture_query_int8(url, "SELECT sum(n)::bigint FROM counter");
}

static struct run new_run(int turns, int keys, bool with_lock)
{
    struct run r = {.turns = turns / PROCESSES, .keys = keys, .with_lock = with_lock};

    r.shared = mmap(NULL, sizeof *r.shared, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(r.shared != MAP_FAILED);
    return r;
}

static void assert_excluded(struct run *r)
{
    assert_int_equal(atomic_load(&r->shared->overlaps), 0);
    assert_int_equal(atomic_load(&r->shared->older_tokens), 0);
    assert_true(atomic_load(&r->shared->busy) > r->turns); /* 1 in 16 at least */
    (void)munmap(r->shared, sizeof *r->shared);
}

/* ---- the tests ---- */

static void negative_control_without_the_lock_increments_are_lost(void **state)
{
    struct run r = new_run(4000, 1, false);

    (void)state;
    assert_true(run_all(&r) > 0);
    (void)munmap(r.shared, sizeof *r.shared);
}

static void excl_two_processes(void **state)
{
    struct run r = new_run(10000, 1, true);

    (void)state;
    assert_int_equal(run_all(&r), 0);
    assert_excluded(&r);
}

static void two_hundred_thousand_turns_lose_nothing(void **state)
{
    const char *wanted = getenv("LEDGERLOCK_TEST_TURNS");
    struct run r =
        new_run(wanted != NULL ? atoi(wanted) : DEFAULT_TURNS, KEYS_MOST, true);

    (void)state;
    assert_int_equal(run_all(&r), 0);
    assert_excluded(&r);
}

static int open_world(void **state)
{
    int code = lock_start_server(state);

    fixture_open(&f);
    fixture_url_as(&f, "postgres", url, sizeof url);
    fixture_exec(url, "CREATE UNLOGGED TABLE counter (k int PRIMARY KEY, n bigint NOT "
                      "NULL DEFAULT 0) WITH (fillfactor = 10);"
                      "INSERT INTO counter (k) SELECT generate_series(0, 3)");
    return code;
}

static int close_world(void **state)
{
    fixture_close(&f);
    return lock_stop_server(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCK_TEST(negative_control_without_the_lock_increments_are_lost),
        LOCK_TEST(excl_two_processes),
        LOCK_TEST(two_hundred_thousand_turns_lose_nothing),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, open_world, close_world);
}

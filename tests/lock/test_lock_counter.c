/* The purpose of the lock: a counter in PostgreSQL that is read, then written, by
 * sixteen processes, and loses nothing. LL_TEST_ROUNDS sets how many rounds
 * (200000 for the full number). */
#include "tests/lib/crowd.h"
#include "tests/lib/lock_world.h"

#include <libpq-fe.h>
#include <stdatomic.h>

enum { PROCESSES = 16, DEFAULT_ROUNDS = 6400, KEYS_MOST = 4 };

static struct fixture f;
static char url[FIXTURE_URL]; /* of the superuser: no role needs the table */

/* One run, in the memory that its processes share. */
struct run {
    int rounds; /* of each process */
    int keys;
    bool with_lock;
    atomic_int busy;              /* found held when it was first asked for */
    atomic_int inside[KEYS_MOST]; /* holders of each key */
    atomic_int overlaps;          /* two holders at once */
    _Atomic int64_t last_token[KEYS_MOST];
    atomic_int older_tokens; /* a token that was not above all before */
};

/* ---- one round ---- */

static PGconn *connect_pg(void)
{
    PGconn *pg = PQconnectdb(url);

    PQclear(PQexec(pg, "SET synchronous_commit = off"));
    PQclear(PQprepare(pg, "read", "SELECT n FROM counter WHERE k = $1::int", 0, NULL));
    PQclear(PQprepare(pg, "write",
                      "UPDATE counter SET n = $2::bigint WHERE k = $1::int", 0, NULL));
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

static bool locked_round(struct run *r, struct rlock *l, PGconn *pg, int k)
{
    char name[16];
    struct rlock_key key = {name, (size_t)snprintf(name, sizeof name, "counter:%d", k)};
    int code = rlock_acquire(l, &key, 1, RLOCK_ALL, 60000);
    bool ok;

    if (code == RLOCK_BUSY) {
        (void)atomic_fetch_add(&r->busy, 1);
        code = rlock_acquire_wait(l, &key, 1, RLOCK_ALL, 60000, 300000, -1);
    }
    if (code != RLOCK_OK)
        return false;
    if (atomic_fetch_add(&r->inside[k], 1) != 0)
        (void)atomic_fetch_add(&r->overlaps, 1);
    if (atomic_exchange(&r->last_token[k], rlock_token(l)) >= rlock_token(l))
        (void)atomic_fetch_add(&r->older_tokens, 1);
    ok = read_and_write(pg, k);
    (void)atomic_fetch_sub(&r->inside[k], 1);
    return rlock_release(l) == RLOCK_OK && ok;
}

static int work(int id, void *arg)
{
    struct run *r = arg;
    LONE *l = rlock_new(lock_client(lock_server.url, 0));
    PGconn *pg = connect_pg();
    bool ok = pg != NULL;

    for (int i = 0; ok && i < r->rounds; i++) {
        int k = (i + id) % r->keys;

        ok = r->with_lock ? locked_round(r, l, pg, k) : read_and_write(pg, k);
    }
    if (!ok)
        (void)fprintf(stderr, "%s%s\n", rlock_error(l->client), PQerrorMessage(pg));
    PQfinish(pg);
    return ok ? 0 : 1;
}

/* ---- the tests ---- */

/* Returns how many increments are missing, and in *met how often one found the key
 * held.
 */
static int64_t run_once(int rounds, int keys, bool with_lock, int *met)
{
    struct run *r = crowd_memory(sizeof *r);
    int64_t began_ms = fixture_now_ms(), ms;

    r->rounds = rounds / PROCESSES;
    r->keys = keys;
    r->with_lock = with_lock;
    fixture_exec(url, "UPDATE counter SET n = 0");
    crowd_run(PROCESSES, work, r);
    ms = fixture_now_ms() - began_ms;
    print_message("%d rounds of %d processes on %d keys in %.1f s, %d found it held\n",
                  r->rounds * PROCESSES, PROCESSES, keys, (double)ms / 1e3, r->busy);
    promise_true(!with_lock || r->overlaps == 0);
    promise_true(!with_lock || r->older_tokens == 0);
    *met = r->busy;
    return (int64_t)r->rounds * PROCESSES -
           fixture_query_int8(url, "SELECT sum(n)::bigint FROM counter");
}

/* With the lock they meet in one round of 16 at least. */
static int64_t run_all(int rounds, int keys, bool with_lock)
{
    int64_t missing = 0;
    int met = 0;

    for (int again = 0; again < 5 && missing == 0 && met <= rounds / PROCESSES;
         again++) {
        rounds *= again > 0 ? 2 : 1;
        missing = run_once(rounds, keys, with_lock, &met);
    }
    assert_true(!with_lock || met > rounds / PROCESSES);
    return missing;
}

LOCK_CASE(negative_control_without_the_lock_increments_are_lost)
{
    assert_true(run_all(1600, 1, false) > 0);
}

/* Guarantee: 16 processes and 10,000 increments of one counter: none is lost, and
 * never two are inside. */
LOCK_CASE(excl_two_processes)
{
    assert_int_equal(run_all(10000, 1, true), 0);
}

/* Guarantee: Tokens of successive holders strictly rise across processes, too. */
LOCK_CASE(two_hundred_thousand_rounds_lose_nothing)
{
    const char *wanted = getenv("LL_TEST_ROUNDS");

    assert_int_equal(
        run_all(wanted != NULL ? atoi(wanted) : DEFAULT_ROUNDS, KEYS_MOST, true), 0);
}

static void open_world(void)
{
    lock_start_server();
    fixture_open(&f);
    fixture_url_as(&f, "postgres", url, sizeof url);
    fixture_exec(url, "CREATE UNLOGGED TABLE counter (k int PRIMARY KEY, n bigint NOT "
                      "NULL DEFAULT 0) WITH (fillfactor = 10);"
                      "INSERT INTO counter (k) SELECT generate_series(0, 3)");
}

static void close_world(void)
{
    fixture_close(&f);
    lock_stop_server();
}

GROUP(.start = open_world, .stop = close_world);

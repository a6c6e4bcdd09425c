/* upgrade: a program to come migrates under a running pool, behind a transaction that
 * is open, and works beside it: nothing stops, and the totals are exact. */
#include "tests/lib/runs.h"
#include "tests/lib/world.h"

static const struct pool_work work = {.users = 500,
                                      .periods = 800}; /* more than it lasts */

WORLD(.batch = 5, .poll_ms = 50, .work = &work);

/* Starts the program to come, with the words of a run or of a migration. */
static void start_next(struct fixture_child *child, const char *role, const char *verb)
{
    const char *now = pool_work_now(&work);
    bool is_run = strcmp(verb, "run") == 0;

    (void)setenv("LL_TEST_BIN", NEXT_PROGRAM, 1);
    fixture_become(&world.f, role);
    fixture_spawn(&world.f, child, verb, is_run ? "--now" : NULL, now, "--jobs",
                  "billing", "-w", "2", NULL);
    fixture_become(&world.f, "ledgerlock_worker");
    (void)unsetenv("LL_TEST_BIN");
}

/* Guarantee: A migration that waits for a lock lets the pool by and tries again; old
 * and new program work side by side, and the totals are exact. */
CASE(upgrade_under_a_running_pool_stops_nothing)
{
    struct fixture_child next = {0}, migration = {0};
    PGconn *reader = PQconnectdb(world.owner);
    int64_t done;

    fixture_spawn(&world.f, &world.pool, "run", "--now", pool_work_now(&work), "--jobs",
                  "billing", "-w", "2", NULL);
    pool_work_wait(&world.f, 1000);
    PQclear(PQexec(reader, "BEGIN; SELECT count(*) FROM ledgerlock.charges"));
    assert_int_equal(PQtransactionStatus(reader), PQTRANS_INTRANS);
    start_next(&migration, "ledgerlock_owner", "migrate");
    pool_log_wait(&migration, "another session holds, try 1 of");
    done = pool_work_done(&world.f);
    pool_log_wait(&migration, "another session holds, try 2 of");
    assert_true(pool_work_done(&world.f) > done); /* nobody waits behind it for ever */
    PQfinish(reader);
    assert_int_equal(fixture_wait(&migration, 120, &said), 0);
    start_next(&next, "ledgerlock_worker", "run");
    world_wait("SELECT count(DISTINCT pool) = 2 FROM ledgerlock.workers WHERE "
               "(counters->>'charged')::int8 > 0");
    (void)kill(world.pool.pid, SIGTERM);
    (void)kill(next.pid, SIGTERM);
    pool_assert_ends(&world.pool, 0);
    pool_assert_ends(&next, 0);
    world.pool.pid = 0;
    runs(&world.f, 0, "audit --lag 36500d");
    runs(&world.f, 0, "run --once --jobs orders"); /* the old one starts again */
}

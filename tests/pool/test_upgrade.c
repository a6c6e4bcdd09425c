/* upgrade: a program to come migrates under a running pool, behind a transaction that
 * is open, and works beside it: nothing stops, and the totals are exact. */
#include "tests/lib/points.h"
#include "tests/lib/steps.h"

static const struct pool_work work = {.users = 500,
                                      .periods = 800}; /* more than it lasts */

WORLD(.batch = 5, .poll_ms = 50, .work = &work);

/* Starts the program to come, with the words of a run or of a migration. */
static void start_next(struct fixture_child *child, const char *role, const char *verb)
{
    const char *now = pool_work_now();
    bool is_run = strcmp(verb, "run") == 0;

    points_use(NEXT_PROGRAM);
    fixture_become(&world.f, role);
    fixture_spawn(&world.f, child, verb, is_run ? "--now" : NULL, now, "--jobs",
                  "billing", "-w", "2", NULL);
    fixture_become(&world.f, "ledgerlock_worker");
    points_as_shipped();
}

/* Guarantee: A migration that waits for a lock lets the pool by and tries again; old
 * and new program work side by side, and the totals are exact. */
CASE(upgrade_under_a_running_pool_stops_nothing)
{
    struct fixture_child next = {0}, migration = {0};
    PGconn *reader = PQconnectdb(world.owner);
    int64_t done;

    pool_start("run --now %s --jobs billing -w 2", pool_work_now());
    pool_work_wait(1000);
    PQclear(PQexec(reader, "BEGIN; SELECT count(*) FROM ledgerlock.charges"));
    assert_int_equal(PQtransactionStatus(reader), PQTRANS_INTRANS);
    start_next(&migration, "ledgerlock_owner", "migrate");
    pool_log_wait(&migration, "another session holds, try 1 of");
    done = pool_work_done();
    pool_log_wait(&migration, "another session holds, try 2 of");
    assert_true(pool_work_done() > done); /* nobody waits behind it for ever */
    PQfinish(reader);
    assert_int_equal(fixture_wait(&migration, 120, &world.o), 0);
    start_next(&next, "ledgerlock_worker", "run");
    world_wait("SELECT count(DISTINCT pool) = 2 FROM ledgerlock.workers WHERE "
               "(counters->>'charged')::int8 > 0");
    (void)kill(world.pool.pid, SIGTERM);
    (void)kill(next.pid, SIGTERM);
    pool_assert_ends(&world.pool, 0);
    pool_assert_ends(&next, 0);
    world_runs(0, "audit --lag 36500d");
    world_runs(0, "run --once --jobs orders"); /* the old one starts again */
}

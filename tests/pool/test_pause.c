/* pause: no pool works a job that is paused, also after a restart, and the others flow;
 * when it is resumed the pools go on without a restart. */
#include "tests/lib/gate.h"
#include "tests/lib/points.h"
#include "tests/lib/steps.h"

enum { WORKERS = 2, MORE = 60, LONG_POLL_MS = 60000, SOON_MS = 20000 };

static const struct pool_work work = {
    .users = 400, .periods = 30, .orders = MORE, .units = 1000};

WORLD(.poll_ms = 50, .batch = 5, .work = &work);

#define CHARGED "SELECT count(*) FROM charges"

/* Support pauses and resumes. */
static void support(const char *verb, const char *reason)
{
    struct fixture f = world.f;

    fixture_become(&f, "ledgerlock_support");
    if (reason != NULL)
        runs(&f, 0, "%s billing --reason '%s'", verb, reason);
    else
        runs(&f, 0, "%s billing", verb);
}

static void start(void)
{
    pool_start("run -w %d --now %s", WORKERS, pool_work_now());
}

/* Places as many orders again, and waits until they are served. */
static void others_flow(void)
{
    world_do("SELECT place_order(1 + g, 'more' || (SELECT count(*) FROM orders) || g,"
             " '[{\"sku\": \"hot\", \"qty\": 1}]', '2024-01-01Z')"
             " FROM generate_series(1, %d) AS g",
             MORE);
    FIXTURE_AWAIT(world_ask("SELECT count(*) FROM orders WHERE state = 'pending'") == 0,
                  "the orders are not served");
}

/* Guarantee: A paused job commits no batch but those in flight, other jobs flow, a pool
 * that is started again keeps the pause, and a resumed job is worked without a restart.
 */
CASE(paused_job_stops_under_load_and_others_flow_until_it_is_resumed)
{
    int64_t charged;

    gate_shut("user_id > 200", 1); /* it is midway until this is opened */
    start();
    FIXTURE_AWAIT(world_ask(CHARGED) > 100, "nothing is charged");
    support("pause", "the bank is closed");
    fixture_assert_contains(said.out, "by ledgerlock_support: the bank is closed");
    world_do("CREATE TABLE at_pause AS SELECT clock_timestamp() AS at");
    pool_log_wait(&world.pool, "event=pool.paused");
    others_flow();
    assert_in_range(world_ask("SELECT count(*) FROM batches, at_pause"
                              " WHERE job = 'billing' AND recorded_at > at_pause.at"),
                    0, WORKERS);
    charged = world_ask(CHARGED);
    pool_stop();
    start();
    pool_log_wait(&world.pool, "event=pool.paused");
    others_flow();
    world_is(charged, CHARGED);
    support("resume", NULL);
    fixture_assert_contains(said.out, "billing is resumed");
    pool_log_wait(&world.pool, "event=pool.resumed");
    world_do("DROP TABLE at_pause");
    gate_open();
    world.work.orders = 3 * MORE;
    pool_work_finish();
}

/* Guarantee: Workers notice a resume however seldom they poll. */
CASE(resume_is_noticed_by_workers_that_poll_once_a_minute)
{
    int64_t since_ms;

    support("pause", NULL);
    pool_start("run -w %d --jobs billing --billing-poll-ms %d --now %s", WORKERS,
               LONG_POLL_MS, pool_work_now());
    pool_log_wait(&world.pool, "event=pool.paused");
    world_is(0, CHARGED);
    since_ms = fixture_now_ms();
    support("resume", NULL);
    FIXTURE_AWAIT(world_ask(CHARGED) > 0, "nothing is charged");
    assert_in_range(fixture_now_ms() - since_ms, 0, SOON_MS);
}

/* Guarantee: Each pause of a job and its end are a row of history, with who, when and
 * why. `run --once` over a paused job ends with exit code 7, and names the pause
 * and the number of rows left. */
CASE(run_once_over_a_paused_job_names_the_pause_and_what_is_left)
{
    support("pause", "first");
    support("pause", "second");
    fixture_assert_contains(said.out, ": first\n");
    world_says(7, "", "run --once -w %d --now %s", WORKERS, pool_work_now());
    fixture_assert_contains(
        said.out,
        "billing: 0 charged, 0 declined, 0 planned, 0 cancelled, 0 parked, left: 400 due"
        " (billing is paused: ledgerlock resume billing); orders: 60 fulfilled,");
    world_runs(0, "status");
    fixture_assert_contains(said.out, "by ledgerlock_support\n  because: first\n");
    world_says(0, "\"reason\": \"first\"", "status --json");
    support("resume", NULL);
    support("resume", NULL);
    fixture_assert_contains(said.out, "billing was not paused");
    world_expect(
        "paused first ledgerlock_support, resumed ledgerlock_support",
        "SELECT string_agg(concat_ws(' ', event, reason, worker), ', ' ORDER BY"
        " event_id) FROM events WHERE job = 'billing'");
    world_runs(0, "run --once -w %d --now %s", WORKERS, pool_work_now());
    pool_work_assert_exact();
}

CASE(pause_takes_the_name_of_one_job)
{
    world_says(2, "no job is called \"bills\"", "pause bills");
    world_says(2, "it takes the name of a job", "resume");
    world_is(0, "SELECT count(*) FROM paused_jobs");
}

WORLD_OPEN(open_points,
           .poll_ms = 50,
           .batch = 5,
           .work = &work,
           .points = true,
           .undo = points_as_shipped)

/* Guarantee: The rows of a worker that died over them wait while their job is paused.
 */
CASE(rows_of_a_dead_worker_wait_while_their_job_is_paused, .open = open_points)
{
    struct points points;

    points_open(&points);
    pool_start("run -w 1 --jobs billing --now %s", pool_work_now());
    (void)points_step(&points, points_join(&points, 60));
    support("pause", NULL);
    (void)kill(points.workers[0].pid, SIGKILL);
    points_close(&points);
    pool_log_wait(&world.pool, "event=worker.recovers");
    pool_log_wait(&world.pool, "event=pool.paused");
    world_is(0, CHARGED);
    support("resume", NULL);
    FIXTURE_AWAIT(world_ask(CHARGED) > 0, "nothing is charged");
}

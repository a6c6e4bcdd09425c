/* toy job: a program that is built of the same sources, one more line in the registry
 * and one more file works a third kind of row. */
#include "tests/lib/steps.h"

#define ALL_GIVEN "toy: 300 given, 45150 points, 0 parked, nothing left\n"

enum { TASKS = 300 };

static void prepare(void)
{
    world_do(
        "CREATE TABLE toy_tasks (task_id bigint PRIMARY KEY, user_id bigint NOT NULL,"
        " points bigint NOT NULL, state text NOT NULL DEFAULT 'due', due_at"
        " timestamptz NOT NULL DEFAULT now(), fence bigint NOT NULL DEFAULT 0);CREATE"
        " TABLE toy_gifts (task_id bigint PRIMARY KEY, user_id bigint NOT NULL,"
        " points bigint NOT NULL CONSTRAINT one_gift CHECK (points > 0));GRANT"
        " SELECT, UPDATE ON toy_tasks TO ledgerlock_worker;GRANT SELECT, INSERT ON"
        " toy_gifts TO ledgerlock_worker;" INTO_USERS "SELECT g, 'USD' FROM"
        " generate_series(1, 50) AS g;INSERT INTO toy_tasks (task_id, user_id,"
        " points) SELECT g, 1 + g %% 50, g FROM generate_series(1, %d) AS g",
        TASKS);
}

static void begin(void)
{
    (void)setenv("LL_TEST_BIN", TOY_PROGRAM, 1);
}

static const struct world_plan world_plan = {
    .lease_ms = 2000, .batch = 20, .proxies = true, .also = prepare};

GROUP(.plan = &world_plan, .start = begin, GROUP_OF_WORLD);

static void assert_all_given_once(void)
{
    world_is(TASKS, "SELECT count(*) FROM toy_gifts");
    world_is(TASKS * (TASKS + 1) / 2, "SELECT sum(points) FROM toy_gifts");
    world_is(TASKS, "SELECT count(*) FROM toy_tasks WHERE state = 'done'");
}

CASE(job_of_a_line_and_a_file_is_worked_configured_and_shown)
{
    world_runs(0, "run --once --jobs toy --toy 3 --lease-ms 2000");
    assert_string_equal(said.out, ALL_GIVEN);
    assert_all_given_once();
    world_is(3, "SELECT count(*) FROM workers WHERE job = 'toy'");
    world_is(45150, "SELECT sum((counters ->> 'points')::bigint) FROM workers WHERE job"
                    " = 'toy'");
    world_says(0, "toy", "status");
}

/* By its own effects: nothing of billing or orders is asked. */
static void run_and_settle(const char *how)
{
    runs(&world.through, 0, "run --once --jobs toy --toy 1");
    assert_all_given_once();
    assert_string_equal(said.out, ALL_GIVEN);
    assert_int_equal(pool_incidents("commit_unknown", how), 1);
}

CASE(commit_in_doubt_that_arrived_is_settled_by_the_effects_of_the_job)
{
    proxy_cut_after(&world.to_postgres, PROXY_AT_COMMIT, 1);
    run_and_settle("settled: committed");
}

CASE(commit_in_doubt_that_did_not_arrive_is_settled_by_the_effects_of_the_job)
{
    proxy_cut_before(&world.to_postgres, PROXY_AT_COMMIT, 1);
    run_and_settle("settled: rolled back");
}

CASE(task_of_a_user_that_does_not_exist_is_parked_listed_and_given_back)
{
    world_do("DELETE FROM users WHERE user_id = 7");
    world_says(8, "294 given", "run --once --jobs toy");
    fixture_assert_contains(said.out, "6 parked");
    world_says(0, "task:6", "parked list");
    world_user(7, 0);
    fixture_become(&world.f, "ledgerlock_owner");
    world_runs(0, "parked release --all --yes");
    fixture_become(&world.f, "ledgerlock_worker");
    world_runs(0, "run --once --jobs toy");
    assert_all_given_once();
}

/* Of its table alone: the jobs beside it know nothing of the constraint. */
CASE(task_that_violates_a_constraint_of_the_toy_job_is_parked_alone)
{
    world_do("UPDATE toy_tasks SET points = -1 WHERE task_id = 9");
    world_says(8, "299 given", "run --once --jobs toy");
    fixture_assert_contains(said.out, "1 parked, nothing left");
    world_says(0, "task:9", "parked list");
    world_is(1, "SELECT count(*) FROM toy_tasks WHERE state = 'parked'");
    world_is(TASKS - 1, "SELECT count(*) FROM toy_gifts");
}

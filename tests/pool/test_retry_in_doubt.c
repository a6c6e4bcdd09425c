/* retry in doubt: the answer to a COMMIT is lost, and it is hard to tell what became of
 * it: the charge is a row of an earlier batch, the id of the transaction was given out
 * again, the worker dies before it knows. */
#include "tests/lib/hand.h"
#include "tests/lib/steps.h"
#include "worker/batch/batch.h"

static const struct world_plan world_plan = {.proxies = true};

static void open_declined(void)
{
    world_open();
    world_user(1, 50);
    world_subscription(1, 1, 100, "2024-01-31Z");
    world_run("2024-01-31T00:00:00Z");
    world_expect("past_due 1", "SELECT state || ' ' || retries FROM subscriptions");
}

GROUP(.plan = &world_plan,
      .open = open_declined,
      .end = world_end,
      .close = world_close);

/* Runs once, far enough behind the first try; COMMIT is done, its answer is lost. */
static void run_and_lose_the_answer(void)
{
    proxy_cut_after(&world.to_postgres, PROXY_AT_COMMIT, 1);
    runs(&world.through, 0, "run -w 1 --once --now 2024-02-05T00:00:00Z");
    assert_int_equal(proxy_count(&world.to_postgres, PROXY_CUTS_AFTER), 1);
    assert_int_equal(pool_incidents("commit_unknown", "settled: committed"), 1);
}

/* Guarantee: A COMMIT whose answer is lost is settled as committed where it paid a
 * charge that was declined before. */
CASE(retry_that_is_paid_in_doubt_is_settled_as_committed)
{
    world_deposit(1, 2, 100);
    run_and_lose_the_answer();
    world_expect("captured 2", "SELECT state || ' ' || tries FROM charges");
}

/* Guarantee: A COMMIT whose answer is lost is settled as committed where it declined a
 * charge once more. */
CASE(retry_that_is_declined_in_doubt_is_settled_as_committed)
{
    run_and_lose_the_answer();
    world_expect("declined 2", "SELECT state || ' ' || tries FROM charges");
}

/* ---- when the servers were away ---- */

static void open_in_doubt(struct hand *h)
{
    hand_open(h, 10000);
    h->s.batch = calloc(1, sizeof *h->s.batch);
    h->s.attempt.in_doubt = true;
    h->s.attempt.xid = world_ask("SELECT txid_current()");
}

/* After a crash of the server the id of a transaction that never reached the disk is
 * given out again: here to this one, which commits. */
/* Guarantee: A COMMIT in doubt without an effect is settled as rolled back, although
 * another transaction has committed under its number. */
CASE(number_that_was_given_out_again_is_no_commit)
{
    struct err e = {0};
    HAND h;

    open_in_doubt(&h);
    h.s.attempt.token = 77;
    h.s.attempt.done.effects = 1;
    h.s.attempt.rows.n = 1;
    h.s.attempt.rows.items[0] = 1;
    assert_int_equal(in_doubt_settle(&h.s, &e), 0);
    assert_int_equal(h.s.attempt.code, ERR_LOST);
    assert_int_equal(pool_incidents("commit_unknown", "settled: rolled back"), 1);
}

/* Guarantee: A COMMIT in doubt that declined a charge is settled as committed, also
 * when another worker has tried the charge again since. */
CASE(declined_charge_that_was_tried_again_since_is_settled_as_committed)
{
    struct err e = {0};
    HAND h;

    world_run("2024-02-05T00:00:00Z");
    open_in_doubt(&h);
    h.s.attempt.token = world_ask("SELECT fence FROM charges");
    h.s.attempt.done.effects = 1;
    h.s.attempt.rows.n = 1;
    h.s.attempt.rows.items[0] = 1;
    world_run("2024-03-05T00:00:00Z");
    assert_true(world_ask("SELECT fence FROM charges") != h.s.attempt.token);
    assert_int_equal(in_doubt_settle(&h.s, &e), 0);
    assert_int_equal(h.s.attempt.code, 0);
    assert_int_equal(pool_incidents("commit_unknown", "settled: committed"), 1);
}

/* Guarantee: A COMMIT in doubt stays so while PostgreSQL tells nothing of it. */
CASE(error_of_the_question_settles_nothing)
{
    struct err e = {0}, none = {0};
    HAND h;

    open_in_doubt(&h); /* its transaction wrote nothing with its token */
    super_do("REVOKE EXECUTE ON FUNCTION pg_xact_status FROM PUBLIC");
    assert_int_equal(in_doubt_settle(&h.s, &e), ERR_DENIED);
    assert_true(h.s.attempt.in_doubt);
    super_do("GRANT EXECUTE ON FUNCTION pg_xact_status TO PUBLIC");
    assert_int_equal(in_doubt_settle(&h.s, &none), 0);
    assert_int_equal(h.s.attempt.code, 0);
}

/* Guarantee: A row that was parked counts as parked, also if PostgreSQL's answer was
 * lost. */
CASE(row_that_is_parked_and_whose_answer_is_lost_counts)
{
    static const char park[] = "\0pool_park_rows";

    world_user(2, 1000);
    world_subscription(2, 2, 100, "2024-02-01Z");
    world_do("UPDATE subscriptions SET next_period_no = 9223372036854775000, every ="
             " 1000 WHERE subscription_id = 2");
    proxy_cut_after(&world.to_postgres, park, sizeof park, 1);
    runs(&world.through, 8, "run -w 1 --once --now 2024-02-05T00:00:00Z");
    assert_int_equal(proxy_count(&world.to_postgres, PROXY_CUTS_AFTER), 1);
    fixture_assert_contains(said.out, " 1 parked, nothing left");
}

/* Guarantee: An incident that happened while PostgreSQL was away is written down later,
 * with the time at which it happened. */
CASE(incident_of_an_outage_has_the_time_at_which_it_happened)
{
    struct err e = {0};
    HAND h;

    hand_open(&h, 10000);
    pg_close(h.s.pg);
    h.s.pg = NULL;
    incident_log(&h.s, "lost", "release", "user:1", "while it was away");
    fixture_pause_ms(1500);
    world_do("CREATE TABLE public.back AS SELECT clock_timestamp() AS at");
    assert_int_equal(session_connect(&h.s, &e), 0);
    assert_int_equal(incidents_write(&h.s, &e), 0);
    world_expect("t",
                 "SELECT i.at < back.at - interval '1 second' FROM lock_incidents AS"
                 " i, public.back");
}

/* The lease would keep its keys for a minute and a half. */
/* Guarantee: A worker that is killed while it does not know what became of its COMMIT
 * leaves its keys and its rows to its successor, which charges nothing twice. */
CASE(worker_killed_in_doubt_leaves_its_keys_to_its_successor)
{
    pid_t pids[POOL_CHILDREN];
    int64_t until_ms;

    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", "90000");
    world_deposit(1, 2, 100);
    proxy_swallow_after(&world.to_postgres, PROXY_AT_COMMIT);
    pool_start_in(&world.through, "run -w 1 --jobs billing --now 2024-02-05T00:00:00Z");
    assert_true(proxy_wait(&world.to_postgres, PROXY_SWALLOWED, 1, 60));
    proxy_cut_all(&world.to_postgres); /* it wants to ask, and gets no answer */
    assert_true(proxy_wait(&world.to_postgres, PROXY_REFUSED, 1, 60));
    fixture_pause_ms(500);
    assert_true(pool_lock_keys() > 0);
    assert_int_equal(pool_children(world.pool.pid, pids), 1);
    assert_int_equal(kill(pids[0], SIGKILL), 0);
    proxy_pass(&world.to_postgres);
    proxy_cut_all(&world.to_postgres);
    until_ms = fixture_now_ms() + 45000;
    while (pool_lock_keys() > 0 && fixture_now_ms() < until_ms)
        fixture_pause_ms(20);
    assert_int_equal(pool_lock_keys(), 0);
    pool_log_wait(&world.pool, "event=worker.recovers");
    pool_stop();
    world_expect("captured 2", "SELECT state || ' ' || tries FROM charges");
}

/* ---- time at the server ---- */

/* Guarantee: PostgreSQL ends each statement of a worker, its wait for a row and an idle
 * transaction before the lease is over. */
CASE(limits_of_a_session_end_what_it_does_before_its_lease)
{
    HAND hand;
    struct pg_result *res;
    struct err e = {0};

    hand_open(&hand, 10000);
    assert_int_equal(
        pg_exec_text(hand.s.pg,
                     "SELECT concat_ws(' ', current_setting('statement_timeout'),"
                     " current_setting('lock_timeout'),"
                     " current_setting('idle_in_transaction_session_timeout'))",
                     &res, &e),
        0);
    assert_string_equal(pg_get_text(res, 0, 0), "5s 2500ms 5s");
    pg_result_free(res);
}

/* Guarantee: A worker gives up an answer of PostgreSQL that does not come before the
 * lease of its keys is over. */
CASE(answer_that_does_not_come_is_given_up_before_the_lease_is_over)
{
    HAND h;
    struct err e = {0};

    hand_open(&h, 8000);
    pg_close(h.s.pg);
    h.s.pg = NULL;
    (void)snprintf(h.config.postgres_url, CONFIG_TEXT, "%s", world.through.url);
    assert_int_equal(session_connect(&h.s, &e), 0);
    assert_int_equal(rlock_try(h.s.lock, "user:1", 8000), RLOCK_OK);
    proxy_swallow(&world.to_postgres, true);
    assert_int_equal(pg_exec_text(h.s.pg, "SELECT 1", NULL, &e), ERR_TIMEOUT);
    assert_true(rlock_valid(h.s.lock, 0));
    proxy_swallow(&world.to_postgres, false);
    assert_int_equal(rlock_release(h.s.lock), RLOCK_OK);
}

/* commit unknown: the connection is cut exactly before or after COMMIT, or in the
 * middle of the work: each time it is found out what became of the work, and the totals
 * are exact. */
#include "tests/lib/gate.h"
#include "tests/lib/meet.h"
#include "tests/lib/points.h"
#include "tests/lib/shop.h"
#include "tests/lib/steps.h"

enum { CUTS = 10, PORTIONS = 2 * CUTS + 1 };

static const struct pool_work both = {
    .users = 200, .periods = 9, .orders = 200, .units = 120};
static const struct pool_work subscriptions = {.users = 200, .periods = 9};

#define PLAN                                                                           \
    .any = true, .checker = true, .poll_ms = 50, .batch = 5, .points = true,           \
    .proxies = true

/* Slow answers are no lost ones. */
WORLD(PLAN, .work = &both, .lease_ms = 10000);

WORLD_OPEN(open_subscriptions, PLAN, .work = &subscriptions, .lease_ms = 10000)

WORLD_OPEN(open_short_lease, PLAN, .work = &subscriptions, .lease_ms = 1500)

/* A lock is waited for a quarter of it, also by COMMIT. */
WORLD_OPEN(open_long_lease, PLAN, .work = &subscriptions, .lease_ms = 120000)

static void start(const char *workers)
{
    pool_start_in(&world.through, "run -w %s --now %s", workers, pool_work_now());
}

/* Half of the users are held: each cut is made, and then a portion of them let go, so
 * that there is a COMMIT for it. The workers have met before. */
static void start_midway(void)
{
    meet_begin();
    gate_shut("user_id % 2 = 0", PORTIONS);
    start("4");
    pool_work_wait(50);
    meet_assert("billing");
    if (world.work.orders > 0)
        meet_assert("orders");
}

/* The pool's own count, in its last line, is what stands in the rows: nothing counted
 * twice or forgotten on the way through unknown outcomes. */
static void assert_said_done(int charged, int decided)
{
    int sold = decided < world.work.units ? decided : world.work.units;
    char words[128];

    pool_logged(2, "event=pool.done"); /* one a job */
    (void)snprintf(words, sizeof words, " charged=%d declined=0 ", charged);
    pool_log_wait(&world.pool, words);
    (void)snprintf(words, sizeof words, " fulfilled=%d rejected=%d ", sold,
                   decided - sold);
    pool_log_wait(&world.pool, words);
}

static void finish_exactly(void)
{
    pool_work_finish();
    pool_logged(0, "event=pool.worker_died");
    promise_int_equal(pool_log_count(&world.pool, "event=commit.unsettled"), 0);
    checker_assert_holds(pool_work_now(), "");
    assert_said_done(world.work.users * world.work.periods, world.work.orders);
}

static void assert_settled(int64_t committed, int64_t rolled_back)
{
    assert_int_equal(pool_incidents("commit_unknown", "settled: committed"), committed);
    assert_int_equal(pool_incidents("commit_unknown", "settled: rolled back"),
                     rolled_back);
    assert_int_equal(pool_counter("commit_unknown"), committed + rolled_back);
}

/* ---- around COMMIT ---- */

static void cut(bool after, unsigned times)
{
    enum proxy_count count = after ? PROXY_CUTS_AFTER : PROXY_CUTS_BEFORE;
    unsigned before = proxy_count(&world.to_postgres, count);

    (after ? proxy_cut_after : proxy_cut_before)(&world.to_postgres, PROXY_AT_COMMIT,
                                                 times);
    gate_feed();
    assert_true(proxy_wait(&world.to_postgres, count, before + times, 60));
}

/* Guarantee: A COMMIT that never reached the server is settled as rolled back, and
 * its rows are worked again. */
CASE(commit_never_sent_on_is_settled_as_rolled_back)
{
    start_midway();
    for (unsigned i = 0; i < CUTS; i++)
        cut(false, 1);
    finish_exactly();
    assert_settled(0, CUTS);
}

/* Guarantee: A COMMIT whose answer is lost is settled by its effects as committed;
 * nothing is done twice. */
CASE(commit_ack_lost_is_settled_as_committed)
{
    start_midway();
    for (unsigned i = 0; i < CUTS; i++)
        cut(true, 1);
    finish_exactly();
    assert_settled(CUTS, 0);
}

/* Guarantee: A COMMIT whose answer is lost is settled when all workers lose theirs
 * at once. */
CASE(commit_ack_lost_by_all_workers_at_once_is_settled, .open = open_subscriptions)
{
    start_midway();
    cut(false, 4);
    cut(true, 4);
    finish_exactly();
    assert_settled(4, 4);
}

/* COMMIT of a batch with subscription 1 waits for whoever holds the lock. */
static const char slow_commit[] =
    "CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM"
    " pg_advisory_xact_lock_shared(1); RETURN NULL; END $$; CREATE CONSTRAINT TRIGGER"
    " slow AFTER INSERT ON ledgerlock.charges DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
    " WHEN (NEW.subscription_id = 1) EXECUTE FUNCTION public.slow()";

#define COMMITTING                                                                     \
    "SELECT count(*) FROM pg_stat_activity AS c WHERE c.datname = current_database()"  \
    " AND c.query = 'COMMIT' AND c.wait_event = 'advisory'"
#define ASKED_MEANWHILE                                                                \
    COMMITTING                                                                         \
    " AND EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.datname ="                 \
    " c.datname AND a.query LIKE '%%pg_xact_status%%' AND a.pid <> c.pid AND"          \
    " a.pid <> pg_backend_pid())"

/* A worker that asks while it still runs sees no effects yet, and must not believe it.
 */
/* Guarantee: A COMMIT that still runs is waited for before it is settled. */
CASE(commit_still_running_is_waited_for, .open = open_long_lease)
{
    super_do("%s", slow_commit);
    shop_hold("SELECT pg_advisory_xact_lock(1)");
    start("1");
    world_wait(COMMITTING);
    proxy_cut_all(&world.to_postgres);
    world_wait(ASKED_MEANWHILE);
    shop_let_go();
    finish_exactly();
    assert_settled(1, 0);
}

/* The pool is told to stop while an outcome is unknown: it finds out before it ends. */
/* Guarantee: A pool that is told to stop settles a COMMIT in doubt before it ends. */
CASE(commit_ack_lost_at_the_end_is_settled_before_exit)
{
    start_midway();
    cut(true, 1);
    pool_stop();
    assert_settled(1, 0);
    assert_true(pool_work_done() < pool_work_all());
    assert_int_equal(pool_counter("charged") + pool_counter("fulfilled") +
                         pool_counter("rejected"),
                     pool_work_done());
    promise_int_equal(pool_lock_keys(), 0);
}

/* ---- in the middle of a transaction ---- */

/* Guarantee: A connection that is lost in the middle of a transaction rolls it back;
 * its rows are worked once. */
CASE(connection_lost_around_apply_is_rolled_back_and_redone)
{
    start_midway();
    for (unsigned i = 1; i <= CUTS; i++) {
        proxy_cut_before(&world.to_postgres, PROXY_AT_APPLY, 1);
        gate_feed();
        assert_true(proxy_wait(&world.to_postgres, PROXY_CUTS_BEFORE, i, 60));
        proxy_cut_after(&world.to_postgres, PROXY_AT_APPLY, 1);
        gate_feed();
        assert_true(proxy_wait(&world.to_postgres, PROXY_CUTS_AFTER, i, 60));
    }
    finish_exactly();
    assert_settled(0, 0);
}

/* Guarantee: A worker that is slower than its lease rolls back before COMMIT. */
CASE(answers_slower_than_the_lease_are_lost_before_commit, .open = open_short_lease)
{
    proxy_swallow_at(&world.to_postgres, PROXY_AT_BEGIN);
    start("1");
    assert_true(proxy_wait(&world.to_postgres, PROXY_SWALLOWED, 1, 60));
    proxy_delay(&world.to_postgres, 550); /* three answers outlast the lease */
    proxy_swallow(&world.to_postgres, false);
    pool_log_wait(&world.pool, "event=lock.lost");
    assert_true(proxy_count(&world.to_postgres, PROXY_DELAYED) >= 3);
    assert_int_equal(pool_work_done(), 0);
    proxy_pass(&world.to_postgres);
    finish_exactly();
    assert_true(pool_incidents("lost", "rolled back, the rows stay due") > 0);
    assert_true(pool_counter("lost") > 0);
}

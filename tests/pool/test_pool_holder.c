/* pool: a worker that holds locks stands still at a chosen message to PostgreSQL, or is
 * killed there; its locks run out or get lost, others do all of the work, and then it
 * goes on. Nothing is done twice, whatever it still wants to do. */
#include "tests/lib/meet.h"
#include "tests/lib/points.h"
#include "tests/lib/steps.h"

/* The lease runs out soon; later; or whoever takes over does so for another reason. */
enum { SHORT_MS = 4000, MIDDLE_MS = 12000, LONG_MS = 90000 };

/* No COMMIT is sent in the last twentieth. */
enum { MARGIN_MS = MIDDLE_MS / 20 };

static pid_t holder;

static const struct pool_work work = {
    .users = 200, .periods = 9, .orders = 200, .units = 120};

static void undo(void)
{
    if (holder > 0) /* the test failed, and it may stand still */
        (void)kill(holder, SIGKILL);
    holder = 0;
}

#define PLAN                                                                           \
    .any = true, .points = true, .checker = true, .redis = true, .proxies = true,      \
    .poll_ms = 50, .batch = 5, .work = &work, .also = meet_plant, .undo = undo
WORLD(PLAN, .lease_ms = SHORT_MS);

WORLD_OPEN(open_long, PLAN, .lease_ms = LONG_MS)

WORLD_OPEN(open_middle, PLAN, .lease_ms = MIDDLE_MS)

/* ---- the holder and the others ---- */

/* The only worker of a pool stands still: PostgreSQL has not got `bytes`, and Redis has
 * its locks. */
static void hold_at(const char *bytes, size_t size)
{
    proxy_swallow_at(&world.to_postgres, bytes, size);
    pool_start_in(&world.through, "run -w 1 --jobs billing --now %s", pool_work_now());
    assert_true(proxy_wait(&world.to_postgres, PROXY_SWALLOWED, 1, 60));
    holder = pool_workers(1);
    (void)kill(holder, SIGSTOP);
    assert_true(pool_lock_keys() > 0);
    assert_int_equal(pool_work_done(), 0);
}

/* Everything, also what the holder has begun. */
static void others_do_all(void)
{
    world_runs(0, "run --once -w 4 --batch 300 --now %s", pool_work_now());
    assert_int_equal(pool_work_done(), pool_work_all());
}

static void holder_goes_on(void)
{
    proxy_swallow(&world.to_postgres, false);
    fixture_pause_ms(200); /* what it had sent arrives before it can say more */
    (void)kill(holder, SIGCONT);
}

static void assert_exact(void)
{
    pool_work_assert_exact();
    checker_assert_holds(pool_work_now(), "--bound-ms 30000");
}

static void end_and_assert_exact(void)
{
    pool_stop();
    holder = 0;
    assert_exact();
}

/* The token of the holder: nobody else has taken one. */
static int64_t held_token(void)
{
    return strtoll(redis_do("GET %s!last", world.f.prefix), NULL, 10);
}

/* ---- its lease runs out ---- */

/* Guarantee: A worker stopped beyond its lease changes nothing when it goes on, and
 * says so once. */
CASE(stop_past_ttl_holder_is_fenced_and_the_journal_says_so_once)
{
    hold_at(PROXY_AT_BEGIN);
    others_do_all(); /* when the lease is over: they wait for its keys */
    fixture_pause_ms(SHORT_MS / 2);
    holder_goes_on();
    pool_log_wait(&world.pool, "event=lock.fenced");
    end_and_assert_exact();
    assert_int_equal(pool_incidents("fenced", "newer fence"), 1);
    assert_int_equal(pool_incidents("lost", ""), 1); /* what its release was told */
    world_is(0, "SELECT count(*) FROM lock_incidents WHERE kind NOT IN"
                " ('fenced', 'lost')");
}

/* True if nobody has a row lock on a user. */
static bool users_are_free(void)
{
    char state[6];

    (void)fixture_sqlstate(
        world.owner, "SELECT 1 FROM ledgerlock.users FOR NO KEY UPDATE NOWAIT", state);
    return strcmp(state, "00000") == 0;
}

/* The session ends, and with it the row locks, while Redis still has the keys. */
/* Guarantee: A worker stopped inside its transaction holds no row when its lease
 * ends. */
CASE(stop_inside_transaction_frees_its_rows_before_the_lease, .open = open_middle)
{
    hold_at(PROXY_AT_APPLY);
    assert_false(users_are_free());
    while (!users_are_free())
        fixture_pause_ms(5);
    assert_true(pool_lock_keys() > 0); /* a quarter of the lease is left */
    others_do_all();
    holder_goes_on();
    pool_log_wait(&world.pool, "event=lock.lost");
    end_and_assert_exact();
    assert_true(pool_counter("lost") > 0);
    assert_int_equal(pool_incidents("lost", ""), pool_counter("lost"));
    pool_logged(0, "event=journal.not_written");
}

/* The worker waits before its transaction, for which the rest of the lease would do. */
/* Guarantee: A worker sends no COMMIT in the last twentieth of its lease. */
CASE(batch_in_the_last_twentieth_of_its_lease_is_rolled_back, .open = open_middle)
{
    struct points points;
    char name[64];
    size_t worker;

    points_open(&points);
    pool_start("run -w 1 --jobs billing --now %s", pool_work_now());
    worker = points_join(&points, 60);
    while (strcmp(points_step(&points, worker), "before_begin") != 0)
        continue;
    assert_true(pool_lock_name(name, sizeof name));
    while (strtoll(redis_do("PTTL %s%s", world.f.prefix, name), NULL, 10) > MARGIN_MS)
        fixture_pause_ms(1);
    assert_string_equal(points_step(&points, worker), "after_claim");
    assert_string_equal(points_step(&points, worker), "before_release");
    assert_int_equal(pool_work_done(), 0);
    points_close(&points);
    pool_work_wait(pool_work_all() / 10);
    pool_stop();
    assert_int_equal(pool_incidents("lost", "rolled back, the rows stay due"), 1);
}

/* The holder found its lease valid and sent COMMIT, which arrives when others have done
 * the work. */
/* Guarantee: A worker stopped between its last check of the lease and COMMIT commits
 * nothing once its session is gone. */
CASE(stop_between_check_and_commit_past_its_lease_commits_nothing)
{
    hold_at(PROXY_AT_COMMIT);
    others_do_all();
    holder_goes_on();
    fixture_pause_ms(300);
    end_and_assert_exact();
    assert_true(pool_log_count(&world.pool, "event=lock.lost") > 0 ||
                pool_log_count(&world.pool, "event=lock.commit_unknown") > 0);
    assert_int_equal(pool_incidents("commit_unknown", "settled: committed"), 0);
}

/* Its keys are gone but its session lives: others hold the same keys beside it, find
 * the rows busy, and come after its COMMIT. */
/* Guarantee: A worker stopped between its last check of the lease and COMMIT is put
 * in order with the others by the row locks. */
CASE(stop_between_check_and_commit_is_put_in_order_by_the_rows, .open = open_long)
{
    int64_t all = pool_work_all(), held;

    hold_at(PROXY_AT_COMMIT);
    held = held_token();
    (void)redis_do("FLUSHALL");
    meet_begin();
    starts(&world.f, &world.others, "run -w 4 --now %s", pool_work_now());
    pool_work_wait(40); /* not all: its rows are locked */
    holder_goes_on();   /* in less than half of its lease: PostgreSQL has kept it */
    pool_work_wait(all);
    pool_end(&world.others);
    meet_assert_both();
    end_and_assert_exact();
    assert_in_range(
        world_ask("SELECT count(*) FROM charges WHERE fence <= %" PRId64, held), 1,
        5); /* the holder's batch */
    world_is(0, "SELECT count(*) FROM users WHERE fence <= %" PRId64, held);
    assert_int_equal(pool_incidents("commit_unknown", ""), 0);
}

/* ---- its locks are lost ---- */

/* Others get what it holds long before its lease ends, with higher tokens; it is
 * fenced. */
static void assert_taken_over(int64_t held)
{
    int64_t begun_ms = fixture_now_ms();
    int64_t fence;

    others_do_all();
    assert_true(fixture_now_ms() - begun_ms <
                LONG_MS / 2); /* and waited for no lease */
    assert_true(world_ask("SELECT min(fence) FROM users") > held);
    fence = world_ask("SELECT max(fence) FROM users");
    holder_goes_on();
    pool_log_wait(&world.pool, "event=lock.fenced");
    end_and_assert_exact();
    world_is(fence, "SELECT max(fence) FROM users"); /* nothing of the old token */
    assert_int_equal(pool_incidents("fenced", "newer fence"), 1);
    assert_int_equal(pool_incidents("lost", ""), 1);
}

static void restart_empty(void)
{
    fixture_redis_kill(&world.redis);
    pool_redis_start(&world.redis);
}

static void flush(void)
{
    assert_string_equal(redis_do("FLUSHALL"), "OK");
}

static void release_by_hand(void)
{
    char name[64];

    while (pool_lock_name(name, sizeof name))
        world_runs(0, "locks release %s --yes", name);
    assert_true(pool_incidents("forced_unlock", "") > 0);
}

static const struct {
    const char *name;
    void (*lose)(void);
} losses[] = {
    {"redis_restarts_empty", restart_empty},
    {"flushall", flush},
    {"an_operator_deletes_the_keys", release_by_hand},
};

/* Guarantee: When Redis restarts empty, is flushed, or somebody deletes the keys while
 * they are held, another gets them with a higher token, and the first holder is fenced.
 */
CASE_ROWS(old_holder_is_fenced_after, losses, .open = open_long)
{
    int64_t held;

    hold_at(PROXY_AT_BEGIN);
    held = held_token();
    row->lose();
    assert_int_equal(pool_lock_keys(), 0);
    assert_taken_over(held);
}

/* ---- it is killed ---- */

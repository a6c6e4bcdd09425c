/* pool: a worker that holds locks stands still at a chosen message to PostgreSQL, or is
 * killed there; its locks run out or get lost, others do all of the work, and then it
 * goes on. Nothing is done twice, whatever it still wants to do. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/lib/checker.h"
#include "tests/lib/points.h"
#include "tests/lib/pool_world.h"
#include "tests/lib/proxy.h"

enum { SHORT_MS = 1500, LONG_MS = 20000, MIDDLE_MS = 8000 };

static struct fixture f;       /* the servers themselves */
static struct fixture through; /* the holder's way to the same database, the proxy */
static struct proxy proxy;
static struct fixture_redis redis;
static struct fixture_child pool, others;
static pid_t holder;
static struct checker checker;

static const struct pool_work work = {
    .users = 200, .periods = 9, .orders = 200, .units = 120};

static void open_with_lease(int lease_ms)
{
    char text[16];

    (void)snprintf(text, sizeof text, "%d", lease_ms);
    fixture_open_migrated(&f);
    checker_open(&checker);
    fixture_become(&f, "ledgerlock_worker");
    fixture_env("LEDGERLOCK_LOCKS_LEASE_MS", text);
    fixture_env("LEDGERLOCK_POOL_POLL_MS", "50");
    fixture_env("LEDGERLOCK_POOL_BATCH", "5");
    pool_work_put(&f, &work);
    memset(&redis, 0, sizeof redis);
    pool_redis_start(&redis);
    (void)snprintf(f.redis_url, sizeof f.redis_url, "%s", redis.url);
    through = f;
    proxy_open_postgres(&proxy, &through);
}

/* The lease runs out, soon. */
static int open_short(void **state)
{
    (void)state;
    open_with_lease(SHORT_MS);
    return 0;
}

/* It does not: whoever takes over does so for another reason. */
static int open_long(void **state)
{
    (void)state;
    open_with_lease(LONG_MS);
    return 0;
}

static int open_middle(void **state)
{
    (void)state;
    open_with_lease(MIDDLE_MS);
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
    if (holder > 0) /* the test failed, and it may stand still */
        (void)kill(holder, SIGKILL);
    holder = 0;
    end(&pool);
    end(&others);
    proxy_close(&proxy);
    fixture_redis_close(&redis);
    pool_redis_password(NULL);
    fixture_close(&f);
    checker_close(&checker);
    return 0;
}

/* ---- the holder and the others ---- */

/* A Bind message of the statement: its name behind an empty portal name. */
static const char apply[] = "\0billing_apply_charges";
static const char begin[] = "BEGIN ISOLATION";

/* The only worker of a pool stands still: PostgreSQL has not got `bytes`, and Redis has
 * its locks. */
static void hold_at(const char *bytes, size_t size)
{
    pid_t workers[POOL_CHILDREN];

    proxy_swallow_at(&proxy, bytes, size);
    fixture_spawn(&through, &pool, "run", "-w", "1", "--now", pool_work_now(&work),
                  NULL);
    assert_true(proxy_wait(&proxy, PROXY_SWALLOWED, 1, 10));
    assert_int_equal(pool_children(pool.pid, workers), 1);
    holder = workers[0];
    (void)kill(holder, SIGSTOP);
    assert_true(pool_lock_keys(&f) > 0);
    assert_int_equal(pool_work_done(&f), 0);
}

/* Everything, also what the holder has begun. */
static void others_do_all(void)
{
    static struct fixture_output o;

    assert_int_equal(fixture_run(&f, &o, "run", "--once", "-w", "4", "--batch", "300",
                                 "--now", pool_work_now(&work), NULL),
                     0);
    assert_int_equal(pool_work_done(&f), pool_work_all(&work));
}

static void holder_goes_on(void)
{
    proxy_swallow(&proxy, false);
    fixture_pause_ms(200); /* what it had sent arrives before it can say more */
    (void)kill(holder, SIGCONT);
}

/* The short lease and a second until what a dead worker was after is worked again. */
static void assert_exact(void)
{
    pool_work_assert_exact(&f, &work);
    checker_assert_holds(&checker, &f, pool_work_now(&work), "--bound-ms 2500");
}

static void end_and_assert_exact(void)
{
    (void)kill(pool.pid, SIGTERM);
    pool_assert_ends(&pool, 0, 10);
    holder = 0;
    assert_exact();
}

static int64_t ask(const char *sql)
{
    return fixture_query_int8(f.url, sql);
}

#define EPOCH "SELECT epoch FROM ledgerlock.lock_epoch"
#define MAX_FENCE "SELECT max(fence) FROM ledgerlock.users"

/* ---- its lease runs out ---- */

static void stop_past_ttl_holder_is_fenced_and_the_journal_says_so_once(void **state)
{
    int64_t since_ms = pool_now_ms();

    (void)state;
    hold_at(begin, strlen(begin));
    others_do_all();
    while (pool_now_ms() < since_ms + 3 * SHORT_MS)
        fixture_pause_ms(20);
    holder_goes_on();
    pool_log_wait(&pool, "event=lock.fenced", 5);
    end_and_assert_exact();
    assert_int_equal(pool_incidents(&f, "fenced", "newer fence"), 1);
    assert_int_equal(pool_incidents(&f, "lost", ""), 1); /* what its release was told */
    assert_int_equal(ask("SELECT count(*) FROM ledgerlock.lock_incidents WHERE kind NOT"
                         " IN ('fenced', 'lost', 'epoch_bump')"),
                     0);
}

/* Whether nobody has a row lock on a user. */
static bool users_are_free(void)
{
    char state[6];

    (void)fixture_sqlstate(
        f.url, "SELECT 1 FROM ledgerlock.users FOR NO KEY UPDATE NOWAIT", state);
    return strcmp(state, "00000") == 0;
}

/* The session ends, and with it the row locks, while Redis still has the keys. */
static void stop_inside_transaction_frees_its_rows_before_the_lease(void **state)
{
    (void)state;
    hold_at(apply, sizeof apply);
    assert_false(users_are_free());
    while (!users_are_free())
        assert_true(pool_lock_keys(&f) > 0); /* else it is too late */
    assert_true(pool_lock_keys(&f) > 0);
    others_do_all();
    holder_goes_on();
    pool_log_wait(&pool, "event=lock.lost", 5);
    end_and_assert_exact();
    assert_true(pool_counter(&f, "lost") > 0);
    assert_int_equal(pool_incidents(&f, "lost", ""), pool_counter(&f, "lost"));
    assert_int_equal(pool_log_count(&pool, "event=journal.not_written"), 0);
}

/* It found its lease valid and sent COMMIT, which arrives when others have done it. */
static void stop_between_check_and_commit_past_its_lease_commits_nothing(void **state)
{
    (void)state;
    hold_at(PROXY_COMMIT, PROXY_COMMIT_SIZE);
    others_do_all();
    holder_goes_on();
    fixture_pause_ms(300);
    end_and_assert_exact();
    assert_true(pool_log_count(&pool, "event=lock.lost") > 0 ||
                pool_log_count(&pool, "event=lock.commit_unknown") > 0);
    assert_int_equal(pool_incidents(&f, "commit_unknown", "settled: committed"), 0);
}

/* Its keys are gone but its session lives: others hold the same keys beside it, find
 * the rows busy, and come after its COMMIT. */
static void stop_between_check_and_commit_is_put_in_order_by_the_rows(void **state)
{
    char reply[32];
    int64_t all = pool_work_all(&work);

    (void)state;
    hold_at(PROXY_COMMIT, PROXY_COMMIT_SIZE);
    pool_redis(redis.url, reply, sizeof reply, "FLUSHALL");
    fixture_spawn(&f, &others, "run", "-w", "2", "--now", pool_work_now(&work), NULL);
    pool_work_wait(&f, 40, 3);
    assert_true(pool_work_done(&f) < all);
    holder_goes_on(); /* in less than half of its lease: PostgreSQL has kept it */
    pool_work_wait(&f, all, 30);
    (void)kill(others.pid, SIGTERM);
    pool_assert_ends(&others, 0, 10);
    end_and_assert_exact();
    assert_in_range(ask("SELECT count(*) FROM ledgerlock.charges WHERE fence < 3 *"
                        " (1::bigint << 40)"),
                    1, 5); /* the holder's batch, of the epoch before */
    assert_int_equal(ask("SELECT count(*) FROM ledgerlock.users WHERE fence < 3 *"
                         " (1::bigint << 40)"),
                     0);
    assert_int_equal(pool_incidents(&f, "commit_unknown", ""), 0);
}

/* ---- its locks are lost ---- */

/* Others get what it holds long before its lease ends, with higher tokens; it is
 * fenced. */
static void assert_taken_over(int64_t epochs)
{
    int64_t epoch = ask(EPOCH);
    int64_t begun_ms = pool_now_ms();
    int64_t fence;

    others_do_all();
    assert_true(pool_now_ms() - begun_ms < LONG_MS / 2);
    assert_int_equal(ask(EPOCH), epoch + epochs);
    fence = ask("SELECT min(fence) FROM ledgerlock.users");
    assert_true(fence > epoch << 40);
    fence = ask(MAX_FENCE);
    holder_goes_on();
    pool_log_wait(&pool, "event=lock.fenced", 5);
    end_and_assert_exact();
    assert_int_equal(ask(MAX_FENCE), fence); /* nothing of the old token */
    assert_int_equal(ask(EPOCH), epoch + epochs);
    assert_int_equal(pool_incidents(&f, "fenced", "newer fence"), 1);
    assert_int_equal(pool_incidents(&f, "lost", ""), 1);
    assert_int_equal(pool_incidents(&f, "epoch_bump", ""), epoch + epochs - 1);
}

static void redis_restart_empty_while_held_fences_the_old_holder(void **state)
{
    (void)state;
    hold_at(begin, strlen(begin));
    fixture_redis_kill(&redis);
    pool_redis_start(&redis);
    assert_int_equal(pool_lock_keys(&f), 0);
    assert_taken_over(1);
}

static void flushall_while_held_raises_the_epoch_once(void **state)
{
    char reply[32];

    (void)state;
    hold_at(begin, strlen(begin));
    pool_redis(redis.url, reply, sizeof reply, "FLUSHALL");
    assert_string_equal(reply, "OK");
    assert_taken_over(1);
}

static void key_deleted_by_operator_goes_to_another_with_a_higher_token(void **state)
{
    static struct fixture_output o;
    char name[64];

    (void)state;
    hold_at(begin, strlen(begin));
    while (pool_lock_name(&f, name, sizeof name))
        assert_int_equal(fixture_run(&f, &o, "locks", "release", name, "--yes", NULL),
                         0);
    assert_true(pool_incidents(&f, "forced_unlock", "") > 0);
    assert_taken_over(0);
}

/* ---- it is killed ---- */

static void crash_releases_by_ttl_and_the_work_is_done_once(void **state)
{
    int64_t killed_ms, done;

    (void)state;
    hold_at(begin, strlen(begin));
    (void)kill(pool.pid, SIGKILL); /* nobody starts it again */
    (void)kill(holder, SIGKILL);
    checker_killed(&checker, holder);
    holder = 0;
    killed_ms = pool_now_ms();
    (void)waitpid(pool.pid, NULL, 0);
    memset(&pool, 0, sizeof pool);
    done = pool_work_done(&f);
    while (pool_lock_keys(&f) > 0) {
        assert_true(pool_now_ms() < killed_ms + SHORT_MS + 100);
        fixture_pause_ms(5);
    }
    assert_int_equal(done, 0);
    others_do_all();
    assert_exact();
    assert_int_equal(pool_incidents(&f, "fenced", "") + pool_incidents(&f, "lost", ""),
                     0);
}

#define HOLDER_TEST(name, open) cmocka_unit_test_setup_teardown(name, open, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOLDER_TEST(stop_past_ttl_holder_is_fenced_and_the_journal_says_so_once,
                    open_short),
        HOLDER_TEST(stop_inside_transaction_frees_its_rows_before_the_lease,
                    open_short),
        HOLDER_TEST(stop_between_check_and_commit_past_its_lease_commits_nothing,
                    open_short),
        HOLDER_TEST(stop_between_check_and_commit_is_put_in_order_by_the_rows,
                    open_middle),
        HOLDER_TEST(redis_restart_empty_while_held_fences_the_old_holder, open_long),
        HOLDER_TEST(flushall_while_held_raises_the_epoch_once, open_long),
        HOLDER_TEST(key_deleted_by_operator_goes_to_another_with_a_higher_token,
                    open_long),
        HOLDER_TEST(crash_releases_by_ttl_and_the_work_is_done_once, open_short),
    };

    fixture_need_servers();
    points_program();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

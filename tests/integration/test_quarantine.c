/* quarantine: a row that takes its workers with it is found among the innocent, set
 * aside after the third, and given back by a person. */
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/lib/crash_world.h"
#include "tests/lib/points.h"

enum { GUILTY = 7 };

static struct fixture f;
static struct fixture_child pool;
static struct fixture_output o;
static struct points points;

/* All users of one bucket, so that all their subscriptions are one batch. */
static const struct pool_work work = {
    .users = 30, .periods = 1, .orders = 20, .units = 20};

static int open_world(void **state)
{
    (void)state;
    crash_open(&f, "10000");
    pool_work_put(&f, &work);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    if (pool.pid > 0) {
        (void)kill(pool.pid, SIGKILL);
        (void)waitpid(pool.pid, NULL, 0);
    }
    memset(&pool, 0, sizeof pool);
    fixture_close(&f);
    return 0;
}

static int open_at_points(void **state)
{
    open_world(state);
    points_program();
    points_open(&points);
    return 0;
}

static int close_at_points(void **state)
{
    points_close(&points);
    points_as_shipped();
    return close_world(state);
}

static void start(const char *workers)
{
    fixture_spawn(&f, &pool, "run", "-w", workers, "--now", pool_work_now(&work), NULL);
}

static void stop(void)
{
    (void)kill(pool.pid, SIGTERM);
    pool_assert_ends(&pool, 0, 15);
}

/* Everything but one row is done, that row is parked, nobody else is suspected. */
static void assert_only_guilty_is_set_aside(const char *job, const char *reason)
{
    char sql[160];

    pool_work_wait(&f, pool_work_all(&work) - (strcmp(job, "billing") == 0), 20);
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM ledgerlock.quarantine WHERE NOT (job = '%s'"
                   " AND item = %d AND crashes = 3)",
                   job, GUILTY);
    assert_int_equal(crash_ask(&f, sql), 0);
    assert_int_equal(crash_ask(&f, "SELECT count(*) FROM ledgerlock.quarantine"), 1);
    assert_int_equal(
        crash_ask(&f, "SELECT (SELECT count(*) FROM ledgerlock.subscriptions WHERE"
                      " state = 'parked') + (SELECT count(*) FROM ledgerlock.orders"
                      " WHERE state = 'parked')"),
        1);
    assert_int_equal(pool_incidents(&f, "parked", ""), 1);
    assert_int_equal(pool_incidents(&f, "parked", reason), 1);
}

/* ---- found ---- */

static void crash_three_times(const char *job, const char *workers, int signal)
{
    crash_slow(&f, job, GUILTY);
    start(workers);
    for (int i = 0; i < 3; i++)
        (void)crash_hanging(&f, pool.pid, signal);
    pool_log_wait(&pool, "event=lock.parked", 10);
}

static void guilty_of_one_batch_is_set_aside_after_its_third_crash(void **state)
{
    (void)state;
    crash_three_times("billing", "1", SIGSEGV);
    assert_int_equal(pool_log_count(&pool, "job=billing rows=30"), 1);  /* in company */
    assert_int_equal(pool_log_count(&pool, "job=billing rows=1\n"), 2); /* alone */
    assert_only_guilty_is_set_aside("billing", "died 3 times while working it, the last"
                                               " time of signal 11");
    assert_int_equal(pool_log_count(&pool, "event=pool.worker_died"), 3);
    stop();
}

static void guilty_order_is_found_while_several_workers_work(void **state)
{
    (void)state;
    crash_three_times("orders", "3", SIGKILL);
    assert_only_guilty_is_set_aside("orders", "signal 9");
    assert_int_equal(pool_log_count(&pool, "event=pool.worker_died"), 3);
    stop();
}

static void guilty_is_found_without_redis_locks_too(void **state)
{
    (void)state;
    fixture_env("LEDGERLOCK_LOCKS_MODE", "database-only");
    crash_three_times("billing", "1", SIGABRT);
    assert_only_guilty_is_set_aside("billing", "signal 6");
    stop();
}

/* Nothing is left of the first pool but what it wrote. */
static void crashes_are_counted_over_a_restart_of_the_pool(void **state)
{
    pid_t worker;

    (void)state;
    crash_slow(&f, "billing", GUILTY);
    start("1");
    for (int i = 0; i < 2; i++)
        (void)crash_hanging(&f, pool.pid, SIGSEGV);
    pool_log_wait(&pool, "rows=1\n", 10);
    worker = crash_wait_hanging(&f, pool.pid);
    (void)kill(pool.pid, SIGKILL);
    (void)kill(worker, SIGKILL);
    (void)waitpid(pool.pid, NULL, 0);
    assert_int_equal(crash_ask(&f, "SELECT max(crashes) FROM ledgerlock.quarantine"),
                     2);
    start("2"); /* nobody saw the third: the row is free when its lease is over */
    (void)crash_hanging(&f, pool.pid, SIGSEGV);
    pool_log_wait(&pool, "event=lock.parked", 10);
    assert_only_guilty_is_set_aside("billing", "died 3 times");
    stop();
}

/* Even then nobody is set aside for a death in company. */
static void quarantine_after_1_sets_aside_whom_it_is_certain_of(void **state)
{
    (void)state;
    fixture_env("LEDGERLOCK_POOL_QUARANTINE_AFTER", "1");
    crash_slow(&f, "billing", GUILTY);
    start("1");
    for (int i = 0; i < 2; i++)
        (void)crash_hanging(&f, pool.pid, SIGSEGV);
    pool_log_wait(&pool, "event=lock.parked", 10);
    pool_work_wait(&f, pool_work_all(&work) - 1, 20);
    assert_int_equal(pool_incidents(&f, "parked", ""), 1);
    assert_int_equal(pool_incidents(&f, "parked", "died 2 times"), 1);
    stop();
}

/* It was pulled before anybody was a suspect, and gets the keys when all are. */
static void batch_that_became_suspects_is_not_worked_in_company(void **state)
{
    size_t dead, other;

    (void)state;
    fixture_spawn(&f, &pool, "run", "-w", "2", "--jobs", "orders", "--now",
                  pool_work_now(&work), NULL);
    dead = points_join(&points, 10);
    other = points_join(&points, 10);
    assert_string_equal(points_step(&points, dead), "after_lock");
    (void)kill(points.workers[dead].pid, SIGKILL);
    (void)points_join(&points, 10);
    assert_int_equal(pool_log_count(&pool, "job=orders rows=20\n"), 1);
    assert_string_equal(points_step(&points, other), "after_lock");
    assert_string_equal(points_step(&points, other), "before_release");
    points_close(&points);
    pool_work_wait(&f, work.orders, 20);
    stop();
}

/* ---- not found ---- */

static void one_crash_makes_suspects_that_are_cleared_by_being_worked(void **state)
{
    (void)state;
    crash_slow(&f, "billing", GUILTY);
    start("2");
    (void)crash_hanging(&f, pool.pid, SIGKILL);
    crash_not_slow(&f, "billing", GUILTY);
    pool_work_wait(&f, pool_work_all(&work), 20);
    assert_int_equal(pool_log_count(&pool, "event=worker.suspects"), 1);
    assert_int_equal(crash_ask(&f, "SELECT count(*) FROM ledgerlock.quarantine"), 0);
    stop();
    pool_work_assert_exact(&f, &work);
}

static void worker_that_did_not_drain_in_time_charges_nobody(void **state)
{
    (void)state;
    fixture_env("LEDGERLOCK_POOL_GRACE_MS", "200");
    crash_slow(&f, "billing", GUILTY);
    start("1");
    (void)crash_wait_hanging(&f, pool.pid);
    crash_not_slow(&f, "billing", GUILTY);
    (void)kill(pool.pid, SIGHUP); /* it is replaced, and killed since it hangs */
    pool_log_wait(&pool, "event=pool.killed", 5);
    pool_log_wait(&pool, "event=worker.rescued", 5);
    pool_work_wait(&f, pool_work_all(&work), 20);
    assert_int_equal(pool_log_count(&pool, "event=worker.suspects"), 0);
    stop();
    pool_work_assert_exact(&f, &work);
}

static void quarantine_after_0_sets_nothing_aside(void **state)
{
    (void)state;
    fixture_env("LEDGERLOCK_POOL_QUARANTINE_AFTER", "0");
    crash_slow(&f, "billing", GUILTY);
    start("1");
    for (int i = 0; i < 4; i++)
        (void)crash_hanging(&f, pool.pid, SIGSEGV);
    crash_not_slow(&f, "billing", GUILTY);
    pool_work_wait(&f, pool_work_all(&work), 20);
    stop();
    pool_work_assert_exact(&f, &work);
}

/* It is the program then, or the machine. */
/* Kills whoever hangs until the pool gives up; how often. Ten times in a row before a
 * worker got anywhere, and a sweep that met nothing but busy keys is somewhere. */
static unsigned kill_until_given_up(void)
{
    unsigned kills = 0, told;

    do {
        assert_true(kills++ < 20);
        (void)crash_hanging(&f, pool.pid, SIGSEGV);
        do {
            fixture_pause_ms(5);
            told = pool_log_count(&pool, "event=pool.giving_up");
        } while (told + pool_log_count(&pool, "event=pool.worker_died") < kills);
    } while (told == 0);
    return kills;
}

static void pool_that_dies_over_every_row_gives_up_and_sets_nothing_aside(void **state)
{
    unsigned kills;

    (void)state;
    for (int i = 1; i <= work.users; i++)
        crash_slow(&f, "billing", i);
    fixture_spawn(&f, &pool, "run", "-w", "1", "--jobs", "billing", "--now",
                  pool_work_now(&work), NULL);
    kills = kill_until_given_up();
    pool_assert_ends(&pool, 70, 10);
    assert_int_equal(pool_log_count(&pool, "event=pool.giving_up"), 1);
    assert_int_equal(pool_log_count(&pool, "job=billing rows=1\n"), kills - 2);
    assert_int_equal(pool_incidents(&f, "parked", ""), 0);
}

/* ---- by hand ---- */

static void set_aside_one(void)
{
    crash_three_times("billing", "1", SIGSEGV);
    assert_only_guilty_is_set_aside("billing", "");
    stop();
    crash_not_slow(&f, "billing", GUILTY);
}

static void list_tells_what_is_set_aside_and_why(void **state)
{
    json_t *doc, *row;

    (void)state;
    assert_int_equal(fixture_run(&f, &o, "quarantine", NULL), 0);
    fixture_assert_contains(o.out, "0 set aside, 0 suspects");
    set_aside_one();
    assert_int_equal(fixture_run(&f, &o, "quarantine", "list", NULL), 0);
    fixture_assert_contains(o.out, "subscription:7");
    fixture_assert_contains(o.out, "its worker died 3 times");
    fixture_assert_contains(o.out, "1 set aside, 0 suspects");
    assert_int_equal(fixture_run(&f, &o, "quarantine", "list", "--json", NULL), 0);
    doc = json_loads(o.out, 0, NULL);
    row = json_array_get(json_object_get(doc, "parked"), 0);
    assert_string_equal(json_string_value(json_object_get(row, "item")),
                        "subscription:7");
    assert_int_equal(json_integer_value(json_object_get(row, "crashes")), 3);
    json_decref(doc);
}

/* By a worker that had pulled it before, and got its key after. */
static void row_set_aside_keeps_its_deaths_whoever_absolves_it(void **state)
{
    char url[FIXTURE_URL];

    (void)state;
    set_aside_one();
    fixture_exec(f.url, "SELECT ledgerlock.absolve('billing', 7)");
    assert_int_equal(crash_ask(&f, "SELECT crashes FROM ledgerlock.quarantine"), 3);
    fixture_url_as(&f, "ledgerlock_owner", url, sizeof url);
    fixture_exec(url,
                 "UPDATE ledgerlock.orders SET state = 'parked' WHERE order_id = 7;"
                 " INSERT INTO ledgerlock.quarantine VALUES ('orders', 7, 3, 'x',"
                 " now()), ('orders', 8, 1, 'x', now())");
    fixture_exec(f.url, "SELECT ledgerlock.absolve('orders', i) FROM"
                        " generate_series(7, 8) AS i");
    assert_int_equal(
        crash_ask(&f, "SELECT sum(crashes) FROM ledgerlock.quarantine WHERE job ="
                      " 'orders'"),
        3);
}

static void released_row_is_worked_again_and_the_journal_says_so(void **state)
{
    (void)state;
    set_aside_one();
    assert_int_equal(
        fixture_run(&f, &o, "quarantine", "release", "subscription:7", NULL), 2);
    fixture_assert_contains(o.err, "--yes");
    assert_int_equal(
        fixture_run(&f, &o, "quarantine", "release", "subscription:7", "--yes", NULL),
        0);
    fixture_assert_contains(o.out, "released subscription:7");
    assert_int_equal(pool_incidents(&f, "resumed", "quarantine release"), 1);
    assert_int_equal(crash_ask(&f, "SELECT crashes FROM ledgerlock.quarantine"), 0);
    start("2");
    pool_work_wait(&f, pool_work_all(&work), 20);
    stop();
    pool_work_assert_exact(&f, &work);
}

static void release_of_what_is_not_set_aside_says_so(void **state)
{
    static const char *const wrong[] = {"subscription:1",
                                        "order:1",
                                        "order:999",
                                        "order:",
                                        "order:1x",
                                        "user:1",
                                        "7",
                                        "order:-1",
                                        "order: 1",
                                        "order:+1",
                                        "order:1 ",
                                        "Order:1",
                                        "orders:1",
                                        "order::1",
                                        "",
                                        "order:0",
                                        "order:9223372036854775808"};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(
            fixture_run(&f, &o, "quarantine", "release", wrong[i], "--yes", NULL), 2);
        fixture_assert_contains(o.err, i < 3 ? "is not set aside" : "is no item");
    }
    assert_int_equal(fixture_run(&f, &o, "quarantine", "free", "order:1", NULL), 2);
    assert_int_equal(pool_incidents(&f, "resumed", ""), 0);
}

static void quarantine_of_a_server_that_is_not_there_exits_with_4(void **state)
{
    (void)state;
    (void)snprintf(f.url, sizeof f.url, "postgresql:///nothing?host=%s",
                   "/nonexistent");
    assert_int_equal(fixture_run(&f, &o, "quarantine", "list", "--json", NULL), 4);
    assert_string_equal(o.out, "");
    fixture_assert_contains(o.err, "/nonexistent");
    assert_int_equal(
        fixture_run(&f, &o, "quarantine", "release", "order:1", "--yes", NULL), 4);
    assert_string_equal(o.out, "");
}

/* ---- old pools ---- */

static void workers_not_seen_for_a_day_are_forgotten_when_a_pool_starts(void **state)
{
    char url[FIXTURE_URL];

    (void)state;
    fixture_url_as(&f, "ledgerlock_owner", url, sizeof url);
    fixture_exec(url, "INSERT INTO ledgerlock.workers SELECT p, 0, 'h', 1, now(), now()"
                      " - d * interval '1 hour', '{}' FROM (VALUES ('old', 25),"
                      " ('young', 23)) AS v (p, d)");
    assert_int_equal(fixture_run(&f, &o, "run", "--once", "-w", "1", "--now",
                                 pool_work_now(&work), NULL),
                     0);
    assert_int_equal(
        crash_ask(&f, "SELECT count(*) FROM ledgerlock.workers WHERE pool = 'old'"), 0);
    assert_int_equal(crash_ask(&f, "SELECT count(*) FROM ledgerlock.workers"), 2);
}

#define QUARANTINE_TEST(name)                                                          \
    cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUARANTINE_TEST(guilty_of_one_batch_is_set_aside_after_its_third_crash),
        QUARANTINE_TEST(guilty_order_is_found_while_several_workers_work),
        cmocka_unit_test_setup_teardown(
            batch_that_became_suspects_is_not_worked_in_company, open_at_points,
            close_at_points),
        QUARANTINE_TEST(guilty_is_found_without_redis_locks_too),
        QUARANTINE_TEST(crashes_are_counted_over_a_restart_of_the_pool),
        QUARANTINE_TEST(quarantine_after_1_sets_aside_whom_it_is_certain_of),
        QUARANTINE_TEST(one_crash_makes_suspects_that_are_cleared_by_being_worked),
        QUARANTINE_TEST(worker_that_did_not_drain_in_time_charges_nobody),
        QUARANTINE_TEST(quarantine_after_0_sets_nothing_aside),
        QUARANTINE_TEST(pool_that_dies_over_every_row_gives_up_and_sets_nothing_aside),
        QUARANTINE_TEST(list_tells_what_is_set_aside_and_why),
        QUARANTINE_TEST(row_set_aside_keeps_its_deaths_whoever_absolves_it),
        QUARANTINE_TEST(released_row_is_worked_again_and_the_journal_says_so),
        QUARANTINE_TEST(release_of_what_is_not_set_aside_says_so),
        QUARANTINE_TEST(quarantine_of_a_server_that_is_not_there_exits_with_4),
        QUARANTINE_TEST(workers_not_seen_for_a_day_are_forgotten_when_a_pool_starts),
    };

    fixture_need_servers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

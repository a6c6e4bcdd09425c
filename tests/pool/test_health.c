/* Health of a pool that runs, asked over loopback: what it tells of servers, rights,
 * workers, its supervisor and the process of the page itself. */
#include "tests/lib/page.h"

static const struct pool_work small = {
    .users = 200, .periods = 3, .orders = 60, .units = 40};

/* A pool that has done all of its work, and answers. */
static void start_and_drain(void)
{
    page_start("run -w 2 --now %s", pool_work_now());
    pool_work_wait(pool_work_all());
    page_await(200, "/readyz", "");
}

WORLD(.poll_ms = 100,
      .lease_ms = 2000,
      .work = &small,
      .redis = true,
      .also = start_and_drain);

/* A worker that has nothing to do asks Redis for nothing. */
static void lose_redis(void)
{
    fixture_redis_kill(&world.redis);
    world_sku(77, "late", 1, 100);
    (void)world_order(1, "late", "[{\"sku\": \"late\", \"qty\": 1}]");
    page_await(503, "/readyz", "redis_down");
}

/* Guarantee: /readyz names the server that a worker misses, and /livez stays ok. */
CASE(readiness_names_the_server_that_is_down)
{
    lose_redis();
    page_is(200, "/livez");
    page_is(200, "/metrics");
    assert_true(page_metric("ledgerlock_redis_up") == 0);
    pool_redis_start(&world.redis);
    page_await(200, "/readyz", "");
}

static void kill_redis(void)
{
    fixture_redis_kill(&world.redis);
}

static void start_redis(void)
{
    pool_redis_start(&world.redis);
}

static void take_rights(void)
{
    (void)redis_do("ACL SETUSER default -evalsha -eval");
}

static void give_rights(void)
{
    (void)redis_do("ACL SETUSER default +@all");
}

static const struct {
    const char *name;
    void (*on)(void);
    void (*off)(void);
} gone[] = {
    {"redis", kill_redis, start_redis},
    {"right_to_lock", take_rights, give_rights},
};

/* Guarantee: /readyz and redis_up notice that Redis, or the right to take a lock there,
 * is gone while no worker has anything to do, and that it is back. */
CASE_ROWS(readiness_notices_that_an_idle_pool_has_no, gone)
{
    row->on();
    page_await(503, "/readyz", "Redis grants no lock: ");
    assert_null(strstr(page.body, "redis_down")); /* of a worker, which did not ask */
    page_is(200, "/metrics");
    assert_true(page_metric("ledgerlock_redis_up") == 0);
    row->off();
    page_await(200, "/readyz", "");
}

/* Guarantee: A supervisor that stands still is neither alive nor ready. */
CASE(liveness_notices_a_supervisor_that_stands_still)
{
    page_is(200, "/livez");
    assert_int_equal(kill(world.pool.pid, SIGSTOP), 0);
    page_await(503, "/livez", "");
    page_await(503, "/readyz", "the supervisor has not gone round for ");
    assert_int_equal(kill(world.pool.pid, SIGCONT), 0);
    page_await(200, "/livez", "");
    page_await(200, "/readyz", "");
}

/* Guarantee: A worker that stands still is silent to /readyz, on the page and in the
 * metrics, and well again when it goes on. */
CASE(readiness_notices_a_worker_that_stands_still)
{
    pid_t pid = pool_child(world.pool.pid, "billing:1");

    assert_int_equal(kill(pid, SIGSTOP), 0);
    page_await(503, "/readyz", "worker 1 of billing: silent");
    page_is(200, "/livez");
    PAGE_AWAIT("/state", "\"state\":\"silent\"");
    page_is(200, "/metrics");
    assert_true(page_metric("ledgerlock_workers{job=\"billing\",state=\"silent\"}") ==
                1);
    assert_int_equal(kill(pid, SIGCONT), 0);
    page_await(200, "/readyz", "");
}

/* Guarantee: While the session that reads the tables for the page hangs, /readyz
 * refuses, and the verdict is not known; both are well again when it goes on. */
CASE(readiness_notices_that_the_reading_of_the_tables_hangs)
{
    pid_t session;

    PAGE_AWAIT("/state", "\"verdict\":\"good\"");
    session = (pid_t)super_ask("SELECT pid FROM pg_stat_activity WHERE datname = "
                               "current_database() AND application_name = "
                               "'ledgerlock http'");
    assert_int_equal(kill(session, SIGSTOP), 0);
    page_await(503, "/readyz", "the tables were last read ");
    page_is(200, "/livez");
    PAGE_AWAIT("/state", "\"verdict\":\"unknown\"");
    assert_int_equal(kill(session, SIGCONT), 0);
    page_await(200, "/readyz", "");
    PAGE_AWAIT("/state", "\"verdict\":\"good\"");
}

/* Guarantee: No answer of the page has a password. */
CASE(answers_have_no_password)
{
    static const char *const paths[] = {"/", "/state", "/metrics", "/readyz", "/livez"};

    lose_redis();
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        assert_int_not_equal(http_get(page_port, &page, paths[i]), 0);
        assert_null(strstr(page.body, pool_redis_secret()));
    }
    pool_redis_start(&world.redis);
}

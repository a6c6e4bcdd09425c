/* The timeline of a pool: what happened to its workers and servers, to which worker,
 * and how long it took until the recovery; and that its page takes no POST. */
#include <jansson.h>

#include "tests/lib/page.h"

enum { LEASE_MS = 2000 };

static const struct pool_work small = {
    .users = 40, .periods = 3, .orders = 20, .units = 20};

WORLD(.poll_ms = 100,
      .lease_ms = LEASE_MS,
      .work = &small,
      .redis = true,
      .proxies = true);

static void start(void)
{
    page_start("run -w 1 --jobs billing --now %s", pool_work_now());
}

/* Asserts that the newest event of this kind is this one; how long it took until the
 * recovery, -1: it is not over, -2: there is none yet. */
static int64_t recovered(const char *what, const char *detail)
{
    json_t *doc = NULL, *event, *found = NULL;
    int64_t ms = -2;
    size_t i;

    if (http_get(page_port, &page, "/state") == 200)
        doc = json_loads(page.body, 0, NULL);
    json_array_foreach(json_object_get(doc, "timeline"), i, event)
    {
        if (found == NULL &&
            strcmp(json_string_value(json_object_get(event, "what")), what) == 0)
            found = event;
    }
    if (found != NULL) {
        assert_string_equal(json_string_value(json_object_get(found, "worker")),
                            "worker 0 of billing");
        fixture_assert_contains(json_string_value(json_object_get(found, "detail")),
                                detail);
        assert_true(json_integer_value(json_object_get(found, "at_ms")) >
                    1700000000000);
        ms = json_integer_value(json_object_get(found, "recovered_ms"));
    }
    json_decref(doc);
    return ms;
}

/* Guarantee: The timeline has a worker that stood still, its lost lease and a worker
 * that died, with the time until each recovered. */
CASE(timeline_tells_what_happened_to_a_worker)
{
    pid_t worker;

    proxy_hold(&world.to_postgres, PROXY_AT_APPLY, 1);
    start();
    assert_true(proxy_wait(&world.to_postgres, PROXY_HELD, 1, 60));
    page_await(200, "/state", "");
    fixture_assert_contains(page.body, "\"timeline\":[]");
    worker = (pid_t)atoi(strstr(page.body, "\"pid\":") + strlen("\"pid\":"));
    assert_int_equal(kill(worker, SIGSTOP), 0);
    proxy_let_go(&world.to_postgres);
    FIXTURE_AWAIT(recovered("worker stood still", "stopped by a signal") == -1,
                  "nothing stands still: %s", page.body);
    fixture_pause_ms(2 * LEASE_MS); /* the fault itself: its lease ends meanwhile */
    assert_int_equal(recovered("worker stood still", ""), -1);
    assert_int_equal(recovered("lease lost", ""), -2);
    assert_int_equal(kill(worker, SIGCONT), 0);
    FIXTURE_AWAIT(recovered("worker stood still", "") >= 2 * LEASE_MS, "it still does");
    FIXTURE_AWAIT(recovered("lease lost", "before its batch ended") >= 0, "none lost");
    assert_int_equal(recovered("worker died", ""), -2);
    assert_int_equal(kill(worker, SIGKILL), 0);
    FIXTURE_AWAIT(recovered("worker died", "signal 9") >= 0, "nobody died: %s",
                  page.body);
    PAGE_AWAIT("/state", "\"what\":\"worker died\",\"worker\":\"worker 0 of billing\","
                         "\"detail\":\"signal 9\"");
    pool_work_wait((int64_t)small.users * small.periods);
}

/* Guarantee: The timeline has each server that was away, with the time until the pool
 * was at work again. */
CASE(timeline_tells_when_a_server_was_away)
{
    start();
    page_await(200, "/readyz", "");
    proxy_refuse(&world.to_postgres, true);
    FIXTURE_AWAIT(recovered("PostgreSQL down", "") == -1, "it is not away: %s",
                  page.body);
    proxy_refuse(&world.to_postgres, false);
    FIXTURE_AWAIT(recovered("PostgreSQL down", "") >= 0, "still away: %s", page.body);
    proxy_refuse(&world.to_redis, true);
    world_subscription(9000, 1, 1,
                       "2024-01-01T00:00:00Z"); /* a worker asks for its key */
    FIXTURE_AWAIT(recovered("Redis down", "") == -1, "it is not away: %s", page.body);
    proxy_refuse(&world.to_redis, false);
    FIXTURE_AWAIT(recovered("Redis down", "") >= 0, "still away: %s", page.body);
}

/* Guarantee: The page of a pool has no button, takes no POST, and `run` has no flag for
 * faults. */
CASE(page_of_a_pool_starts_no_fault)
{
    static const char *const paths[] = {"/", "/state", "/common.js", "/page.js"};

    start();
    page_await(200, "/state", "");
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        page_is(200, paths[i]);
        assert_null(strstr(page.body, "button"));
        assert_null(strstr(page.body, "token"));
    }
    page_is(404, "/chaos");
    assert_int_equal(http_post(page_port, &page,
                               "POST /press/wipe-redis HTTP/1.1\r\nHost: localhost\r\n"
                               "Content-Length: 11\r\nOrigin: http://localhost",
                               "confirm=yes"),
                     405);
    world_says(2, "allow-chaos", "run --once --allow-chaos");
}

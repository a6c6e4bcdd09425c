/* The right to press a button of the page (tests/pool/test_shop.c presses them); and
 * the timeline of a pool: what happened to its workers and servers, to which worker,
 * and how long it took until the recovery. */
#include <jansson.h>

#include "tests/lib/page.h"

WORLD(.poll_ms = 100, .redis = true);

#define TYPE "Content-Type: application/x-www-form-urlencoded"

static int press(const char *headers, const char *with)
{
    return page_press("wipe-redis", headers, with);
}

/* Guarantee: A button works with the token of this page alone, sent by a page of this
 * very address, as a form that is confirmed. */
CASE(button_is_refused_to_strangers)
{
    char lines[320], form_alone[128], unconfirmed[128];

    page_start("run -w 1 --allow-chaos");
    page_read_form();
    (void)snprintf(unconfirmed, sizeof unconfirmed, "%.*s",
                   (int)(strlen(page_form) - strlen("&confirm=yes")), page_form);
    (void)snprintf(form_alone, sizeof form_alone, "Origin: http://localhost:%d",
                   page_port);
    (void)redis_do("SET %suser:7 somebody PX 600000", world.f.prefix);
    assert_int_equal(press(page_ours, "confirm=yes"), 403);
    assert_int_equal(press(page_ours, "token=0&confirm=yes"), 403);
    assert_int_equal(press("Origin: http://shop.example\r\n" TYPE, page_form), 403);
    assert_int_equal(press("Origin: null\r\n" TYPE, page_form), 403);
    assert_int_equal(press(TYPE, page_form), 403);
    (void)snprintf(lines, sizeof lines, "%s\r\nSec-Fetch-Site: cross-site", page_ours);
    assert_int_equal(press(lines, page_form), 403);
    (void)snprintf(lines, sizeof lines, "%s\r\nContent-Type: text/plain", form_alone);
    assert_int_equal(press(lines, page_form), 415);
    assert_int_equal(page_press("format-disk", page_ours, page_form), 405);
    assert_int_equal(press(page_ours, unconfirmed), 400);
    page_await(200, "/state", "");
    fixture_assert_contains(page.body, "\"faults\":[]");
    assert_string_equal(redis_do("EXISTS %suser:7", world.f.prefix), "1");
    assert_int_equal(http_get(page_port, &page, "/chaos/wipe-redis"), 404);
    (void)snprintf(lines, sizeof lines,
                   "OPTIONS /chaos/wipe-redis HTTP/1.1\r\nHost: x");
    assert_int_equal(http_send(page_port, &page, lines), 204);
    fixture_assert_contains(page.head, "Allow: POST, OPTIONS");
    assert_int_equal(press(page_ours, page_form), 303); /* refused was the rest alone */
    FIXTURE_AWAIT(redis_do("EXISTS %suser:7", world.f.prefix)[0] == '0',
                  "nothing was wiped");
}

/* A pool that works no subscription: its fault tells this of itself. */
static void assert_held(const char *what)
{
    char told[96];

    page_start("run -w 1 --jobs orders --allow-chaos");
    page_read_form();
    assert_int_equal(page_press("hold-row", page_ours, page_form), 303);
    (void)snprintf(told, sizeof told,
                   "\"faults\":[{\"fault\":\"Hold a row\",\"what\":\"%s", what);
    PAGE_AWAIT("/state", told);
    pool_stop();
}

/* Guarantee: "Hold a row" takes the row of a user of whom a subscription is due; while
 * none is, one of a user who has a subscription; and of nobody else. */
CASE(held_user_has_a_subscription)
{
    world_user(1, 1000);
    world_user(2, 1000);
    world_user(3, 1000);
    assert_held("failed: LL-5022 no user has a subscription");
    world_subscription(1, 2, 100, "2024-01-01Z");
    world_subscription(2, 1, 100, "2024-01-01Z");
    world_do("UPDATE subscriptions SET next_due_at = now() + interval '1 day' WHERE "
             "subscription_id = 2");
    assert_held("the row of user 2");
    world_do("UPDATE subscriptions SET next_due_at = now() + interval '1 day'");
    assert_held("the row of user 1");
}

WORLD_OPEN(open_idle, .poll_ms = 100, .lease_ms = 4000, .redis = true)

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

/* How long the newest fault took until the recovery; -1: it is not over. */
static int64_t fault_recovered(void)
{
    json_t *doc = NULL, *faults;
    int64_t ms = -1;

    if (http_get(page_port, &page, "/state") == 200)
        doc = json_loads(page.body, 0, NULL);
    faults = json_object_get(json_object_get(doc, "chaos"), "faults");
    if (json_array_size(faults) > 0)
        ms = json_integer_value(
            json_object_get(json_array_get(faults, 0), "recovered_ms"));
    json_decref(doc);
    return ms;
}

/* A worker that holds keys is looked for in vain for 3 s. */
/* Guarantee: "Freeze a worker" lasts for more than a lease, however long a worker was
 * looked for, and is over when the worker has come round, also if nothing is due. */
CASE(frozen_worker_stands_still_for_more_than_a_lease, .open = open_idle)
{
    int64_t begun_ms;
    pid_t pid;

    page_start("run -w 1 --jobs orders --allow-chaos");
    page_read_form();
    pid = pool_child(world.pool.pid, "orders:0");
    assert_int_equal(page_press("freeze-worker", page_ours, page_form), 303);
    FIXTURE_AWAIT(pool_state(pid) == 'T', "nobody froze it");
    begun_ms = fixture_now_ms();
    FIXTURE_AWAIT(pool_state(pid) != 'T', "nobody thawed it");
    assert_true(fixture_now_ms() - begun_ms > 4000);
    FIXTURE_AWAIT(fault_recovered() >= 4000, "not at work again: %s", page.body);
    fixture_assert_contains(page.body, "\"is_busy\":false");
}

/* Guarantee: After "Kill a worker" the button and the timeline tell the same time until
 * the recovery. */
CASE(button_and_timeline_tell_the_same_recovery, .open = open_idle)
{
    page_start("run -w 1 --jobs billing --allow-chaos");
    page_read_form();
    assert_int_equal(page_press("kill-worker", page_ours, page_form), 303);
    FIXTURE_AWAIT(fault_recovered() >= 0, "not at work again: %s", page.body);
    assert_int_equal(fault_recovered(), recovered("worker died", "signal 9"));
}

/* Guarantee: Without --allow-chaos the page has no button, and takes no POST. */
CASE(without_allow_chaos_there_is_no_button)
{
    static const char *const paths[] = {"/", "/state"};

    page_start("run -w 1");
    page_await(200, "/state", "");
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        page_is(200, paths[i]);
        assert_null(strstr(page.body, "button"));
        assert_null(strstr(page.body, "token"));
    }
    page_is(404, "/chaos");
    page_is(404, "/chaos.js");
    assert_int_equal(press("Origin: http://localhost\r\n" TYPE, "confirm=yes"), 405);
    world_says(2, "it needs --http", "run --once --allow-chaos");
}

/* ---- the timeline ---- */

enum { LEASE_MS = 2000 };

static const struct pool_work small = {
    .users = 40, .periods = 3, .orders = 20, .units = 20};

WORLD_OPEN(open_proxies,
           .poll_ms = 100,
           .lease_ms = LEASE_MS,
           .work = &small,
           .redis = true,
           .proxies = true)

static void start(void)
{
    page_start("run -w 1 --jobs billing --now %s", pool_work_now());
}

/* Guarantee: The timeline has a worker that stood still, its lost lease and a worker
 * that died, with the time until each recovered. */
CASE(timeline_tells_what_happened_to_a_worker, .open = open_proxies)
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
CASE(timeline_tells_when_a_server_was_away, .open = open_proxies)
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

/* The right to press a button of the page; tests/pool/test_shop.c presses
 * them. */
#include "tests/lib/button.h"
#include "tests/lib/steps.h"

WORLD(.poll_ms = 100, .redis = true);

static struct http_answer a;
static int port;
static char ours[160], form[128]; /* of a press that is allowed */

#define TYPE "Content-Type: application/x-www-form-urlencoded"

static int press(const char *headers, const char *with)
{
    return button_press(port, &a, "wipe-redis", headers, with);
}

/* Guarantee: A button works with the token of this page alone, sent by a page of this
 * very address, as a form that is confirmed. */
CASE(button_is_refused_to_strangers)
{
    char lines[320], form_alone[128], unconfirmed[128];

    port = fixture_free_port();
    pool_start("run -w 1 --http %d --allow-chaos", port);
    button_form(port, ours, form);
    (void)snprintf(unconfirmed, sizeof unconfirmed, "%.*s",
                   (int)(strlen(form) - strlen("&confirm=yes")), form);
    (void)snprintf(form_alone, sizeof form_alone, "Origin: http://localhost:%d", port);
    (void)redis_do("SET %suser:7 somebody PX 600000", world.f.prefix);
    assert_int_equal(press(ours, "confirm=yes"), 403);
    assert_int_equal(press(ours, "token=0&confirm=yes"), 403);
    assert_int_equal(press("Origin: http://shop.example\r\n" TYPE, form), 403);
    assert_int_equal(press("Origin: null\r\n" TYPE, form), 403);
    assert_int_equal(press(TYPE, form), 403);
    (void)snprintf(lines, sizeof lines, "%s\r\nSec-Fetch-Site: cross-site", ours);
    assert_int_equal(press(lines, form), 403);
    (void)snprintf(lines, sizeof lines, "%s\r\nContent-Type: text/plain", form_alone);
    assert_int_equal(press(lines, form), 415);
    assert_int_equal(button_press(port, &a, "format-disk", ours, form), 405);
    assert_int_equal(press(ours, unconfirmed), 400);
    FIXTURE_AWAIT(http_get(port, &a, "/state") == 200, "no page");
    fixture_assert_contains(a.body, "\"faults\":[]");
    assert_string_equal(redis_do("EXISTS %suser:7", world.f.prefix), "1");
    assert_int_equal(press(ours, form),
                     303); /* what was refused was right but for that */
    FIXTURE_AWAIT(redis_do("EXISTS %suser:7", world.f.prefix)[0] == '0',
                  "nothing was wiped");
    pool_stop();
}

/* A pool that works no subscription: its fault tells this of itself. */
static void assert_held(const char *what)
{
    char told[96];

    port = fixture_free_port();
    pool_start("run -w 1 --jobs orders --http %d --allow-chaos", port);
    button_form(port, ours, form);
    assert_int_equal(button_press(port, &a, "hold-row", ours, form), 303);
    (void)snprintf(told, sizeof told,
                   "\"faults\":[{\"fault\":\"hold-row\",\"what\":\"%s", what);
    FIXTURE_AWAIT(http_get(port, &a, "/state") == 200 && strstr(a.body, told) != NULL,
                  "not %s: %s", what, a.body);
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

static bool is_stopped(pid_t pid)
{
    char path[64], text[256] = "";
    const char *state;
    FILE *f;

    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    f = fopen(path, "r");
    assert_non_null(f);
    (void)!fread(text, 1, sizeof text - 1, f);
    (void)fclose(f);
    state = strrchr(text, ')');
    return state != NULL && state[2] == 'T';
}

WORLD_OPEN(open_idle, .poll_ms = 100, .lease_ms = 4000, .redis = true)

/* A worker that holds keys is looked for in vain for 3 s. */
/* Guarantee: "Freeze a worker" lasts for more than a lease, however long a worker was
 * looked for. */
CASE(frozen_worker_stands_still_for_more_than_a_lease, .open = open_idle)
{
    pid_t pids[POOL_CHILDREN], pid;
    int64_t begun_ms;

    port = fixture_free_port();
    pool_start("run -w 1 --jobs orders --http %d --allow-chaos", port);
    button_form(port, ours, form);
    assert_int_equal(pool_children(world.pool.pid, pids), 2);
    pid = pids[0] == pool_page() ? pids[1] : pids[0];
    assert_int_equal(button_press(port, &a, "freeze-worker", ours, form), 303);
    FIXTURE_AWAIT(is_stopped(pid), "nobody froze it");
    begun_ms = fixture_now_ms();
    FIXTURE_AWAIT(!is_stopped(pid), "nobody thawed it");
    assert_true(fixture_now_ms() - begun_ms > 4000);
    pool_stop();
}

/* Guarantee: Without --allow-chaos the page has no button, and takes no POST. */
CASE(without_allow_chaos_there_is_no_button)
{
    static const char *const paths[] = {"/", "/plain", "/state"};

    port = fixture_free_port();
    pool_start("run -w 1 --http %d", port);
    FIXTURE_AWAIT(http_get(port, &a, "/state") == 200, "no page");
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        assert_int_equal(http_get(port, &a, paths[i]), 200);
        assert_null(strstr(a.body, "button"));
        assert_null(strstr(a.body, "token"));
    }
    assert_int_equal(http_get(port, &a, "/chaos"), 404);
    assert_int_equal(http_get(port, &a, "/chaos.js"), 404);
    assert_int_equal(press("Origin: http://localhost\r\n" TYPE, "confirm=yes"), 405);
    world_says(3, "it needs --http", "run --once --allow-chaos");
    pool_stop();
}

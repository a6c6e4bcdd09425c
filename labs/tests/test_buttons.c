/* The right to press a button of the demonstration's page, and what each does to the
 * pool (labs/tests/test_shop.c: beside the plain side). */
#include <sys/wait.h>
#include <unistd.h>

#include "labs/tests/lib/demo.h"

WORLD(.poll_ms = 100,
      .lease_ms = 4000,
      .redis = true,
      .also = demo_mark,
      .undo = demo_kill);

#define TYPE "Content-Type: application/x-www-form-urlencoded"

/* A shop that places nothing. */
static void start(const char *words)
{
    if (words != NULL) {
        pool_start("%s", words);
        FIXTURE_AWAIT(world_ask("SELECT count(*) FROM live_workers WHERE pid = %d",
                                (int)pool_child(world.pool.pid, "orders:0")) == 1,
                      "%s", "no worker has reported");
    }
    demo_start("--orders 0 --periods 0 --plain 1");
}

static int press(const char *headers, const char *with)
{
    return demo_press_as("wipe-redis", headers, with);
}

static void end(void)
{
    pool_end(&demo);
    if (world.pool.pid > 0)
        pool_stop();
}

/* Guarantee: A button works with the token of this page alone, sent by a page of this
 * very address, as a form that is confirmed. */
CASE(button_is_refused_to_strangers)
{
    char lines[320], form_alone[128], unconfirmed[128];

    start(NULL);
    (void)snprintf(unconfirmed, sizeof unconfirmed, "%.*s",
                   (int)(strlen(demo_form) - strlen("&confirm=yes")), demo_form);
    (void)snprintf(form_alone, sizeof form_alone, "Origin: http://localhost:%d",
                   demo_port);
    (void)redis_do("SET %suser:7 somebody PX 600000", world.f.prefix);
    assert_int_equal(press(demo_ours, "confirm=yes"), 403);
    assert_int_equal(press(demo_ours, "token=0&confirm=yes"), 403);
    assert_int_equal(press("Origin: http://shop.example\r\n" TYPE, demo_form), 403);
    assert_int_equal(press("Origin: null\r\n" TYPE, demo_form), 403);
    assert_int_equal(press(TYPE, demo_form), 403);
    (void)snprintf(lines, sizeof lines, "%s\r\nSec-Fetch-Site: cross-site", demo_ours);
    assert_int_equal(press(lines, demo_form), 403);
    (void)snprintf(lines, sizeof lines, "%s\r\nContent-Type: text/plain", form_alone);
    assert_int_equal(press(lines, demo_form), 415);
    assert_int_equal(demo_press_as("format-disk", demo_ours, demo_form), 405);
    assert_int_equal(press(demo_ours, unconfirmed), 400);
    assert_int_equal(http_get(demo_port, &page, "/state"), 200);
    fixture_assert_contains(page.body, "\"faults\":[]");
    assert_string_equal(redis_do("EXISTS %suser:7", world.f.prefix), "1");
    assert_int_equal(http_get(demo_port, &page, "/press/wipe-redis"), 404);
    assert_int_equal(
        http_send(demo_port, &page, "GET /state HTTP/1.1\r\nHost: shop.example.com"),
        403);
    (void)snprintf(lines, sizeof lines,
                   "OPTIONS /press/wipe-redis HTTP/1.1\r\nHost: x");
    assert_int_equal(http_send(demo_port, &page, lines), 204);
    fixture_assert_contains(page.head, "Allow: POST, OPTIONS");
    assert_int_equal(press(demo_ours, demo_form), 303); /* refused was the rest alone */
    FIXTURE_AWAIT(redis_do("EXISTS %suser:7", world.f.prefix)[0] == '0',
                  "nothing was wiped");
    end();
}

static void assert_held(const char *what)
{
    start("run -w 1 --jobs orders"); /* works no subscription */
    demo_press("hold-row");
    FIXTURE_AWAIT(demo_recovered("Hold a row", what) > -2, "%s", page.body);
    end();
}

/* Guarantee: "Hold a row" takes the row of a user of whom a subscription is due; while
 * none is, one of a user who has a subscription; and of nobody else. */
CASE(held_user_has_a_subscription)
{
    world_user(1001, 1000);
    world_user(1002, 1000);
    world_user(1003, 1000);
    assert_held("failed: no user has a subscription");
    world_subscription(1, 1002, 100, "2024-01-01Z");
    world_subscription(2, 1001, 100, "2024-01-01Z");
    world_do("UPDATE subscriptions SET next_due_at = now() + interval '1 day' WHERE "
             "subscription_id = 2");
    assert_held("the row of user 1002");
    world_do("UPDATE subscriptions SET next_due_at = now() + interval '1 day'");
    assert_held("the row of user 1001");
}

/* A worker that holds keys is looked for in vain for 3 s. */
/* Guarantee: "Freeze a worker" lasts for more than a lease, however long a worker was
 * looked for, and ends by itself. */
CASE(frozen_worker_stands_still_for_more_than_a_lease)
{
    int64_t begun_ms;
    pid_t pid;

    start("run -w 1 --jobs orders");
    pid = pool_child(world.pool.pid, "orders:0");
    demo_press("freeze-worker");
    FIXTURE_AWAIT(pool_state(pid) == 'T', "nobody froze it");
    begun_ms = fixture_now_ms();
    FIXTURE_AWAIT(pool_state(pid) != 'T', "nobody thawed it");
    assert_true(fixture_now_ms() - begun_ms > 4000);
    FIXTURE_AWAIT(demo_recovered("Freeze a worker", "worker 0 of orders, pid ") >= 6000,
                  "not at work again: %s", page.body);
    fixture_assert_contains(page.body, "\"is_busy\":false");
    end();
}

/* Guarantee: "Kill a worker" kills a process that is a worker of a pool, and no other
 * one that has its number. */
CASE(killed_process_is_a_worker)
{
    pid_t pid = fixture_fork();

    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    start(NULL);
    world_do("INSERT INTO workers (pool, slot, job, host, pid, started_at, seen_at, "
             "counters) VALUES ('gone', 0, 'orders', 'h', %ld, now(), now() + interval "
             "'1 day', '{}')",
             (long)pid);
    demo_press("kill-worker");
    FIXTURE_AWAIT(demo_recovered("Kill a worker", "failed: no worker") == -1, "%s",
                  page.body);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    end();
}

/* Guarantee: A worker that is frozen goes on when the process of the page dies. */
CASE(page_that_dies_leaves_no_worker_frozen)
{
    pid_t pid, dead;

    start("run -w 1 --jobs orders");
    pid = pool_child(world.pool.pid, "orders:0");
    demo_press("freeze-worker");
    FIXTURE_AWAIT(pool_state(pid) == 'T', "nobody froze it");
    dead = pool_child(demo.pid, "page");
    assert_int_equal(kill(dead, SIGKILL), 0);
    FIXTURE_AWAIT(pool_state(pid) != 'T', "nobody thawed it");
    assert_int_not_equal(pool_child(demo.pid, "page"), dead);
    end();
}

/* Guarantee: Each worker of each job may be hit. */
CASE(workers_of_all_jobs_are_hit)
{
    bool is_hit[2] = {false};
    int64_t until_ms = fixture_now_ms() + 300000;

    start("run --billing 2 --orders 2");
    while (!is_hit[0] || !is_hit[1]) {
        assert_true(fixture_now_ms() < until_ms);
        demo_press("kill-worker");
        FIXTURE_AWAIT(demo_recovered("Kill a worker", NULL) >= 0, "%s", page.body);
        is_hit[0] = is_hit[0] || strstr(page.body, " of billing, pid ") != NULL;
        is_hit[1] = is_hit[1] || strstr(page.body, " of orders, pid ") != NULL;
        assert_null(strstr(page.body, "failed"));
    }
    end();
}

/* Guarantee: A worker that is frozen goes on when the shop ends, and when it dies. */
CASE(shop_that_ends_leaves_no_worker_frozen)
{
    static const int sigs[] = {SIGTERM, SIGKILL};

    for (size_t i = 0; i < sizeof sigs / sizeof sigs[0]; i++) {
        pid_t pid;

        start("run -w 1 --jobs orders");
        pid = pool_child(world.pool.pid, "orders:0");
        demo_press("freeze-worker");
        FIXTURE_AWAIT(pool_state(pid) == 'T', "nobody froze it");
        assert_int_equal(kill(demo.pid, sigs[i]), 0);
        FIXTURE_AWAIT(pool_state(pid) != 'T', "nobody thawed it");
        demo_kill();
        pool_stop();
    }
}

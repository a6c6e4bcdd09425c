/* top, of each worker: what it does, its keys and its lease, its last trouble, as the
 * page of its pool tells it. */
#include <libpq-fe.h>

#include "tests/lib/http.h"
#include "tests/lib/steps.h"
#include "tests/lib/terminal.h"

static const struct pool_work small = {
    .users = 20, .periods = 3, .orders = 30, .units = 10};

WORLD(.work = &small);

/* A pool with a page, which top finds by its settings. */
static void start_pool(const char *words)
{
    char at[16];
    int port = fixture_free_port();
    struct http_answer *a = calloc(1, sizeof *a);

    (void)snprintf(at, sizeof at, "%d", port);
    fixture_env("LEDGERLOCK_HTTP_LISTEN", at);
    (void)setenv("LEDGERLOCK_HTTP_LISTEN", at, 1); /* of top */
    pool_start("run %s --now %s", words, pool_work_now());
    FIXTURE_AWAIT(http_get(port, a, "/readyz") == 200, "not ready: %s", a->body);
    free(a);
}

/* Waits for the text on a screen that is drawn anew again and again. */
static void wait_redrawn(const char *text)
{
    for (int i = 0; i < 120; i++) {
        t.n = 0;
        press("\014"); /* Ctrl-L */
        wait_for("q quit", 0);
        if (strstr(t.said, text) != NULL)
            return;
        fixture_pause_ms(1000);
    }
    fail_msg("never \"%s\" in: %s", text, t.said);
}

WORLD_OPEN(open_long_lease, .lease_ms = 60000, .poll_ms = 100, .work = &small)

/* Guarantee: In 80 x 24 `top` shows what a worker does, as many of the keys that it
 * holds as fit, and what is left of its lease. */
CASE(top_shows_keys_and_lease_of_each_worker, .open = open_long_lease)
{
    PGconn *holder = PQconnectdb(world.owner);

    PQclear(PQexec(holder, "BEGIN; LOCK TABLE ledgerlock.charges IN EXCLUSIVE MODE"));
    start_pool("-w 4 --jobs billing");
    world_wait_blocked();
    start_top();
    wait_redrawn(" +19"); /* of twenty users, beside the one whose name fits */
    assert_non_null(strstr(t.said, " s user:")); /* of 60 */
    PQfinish(holder);
    pool_work_wait((int64_t)small.users * small.periods);
    wait_redrawn("works");
    quit_top();
    pool_stop();
}

WORLD_OPEN(open_own_redis, .poll_ms = 100, .redis = true, .any = true, .work = &small)

/* Guarantee: `top` shows the last trouble of each worker, an outage or what the
 * timeline has of it, and how long ago it was; s sorts by that, too. */
CASE(top_shows_the_last_trouble_of_each_worker, .open = open_own_redis)
{
    pid_t pids[POOL_CHILDREN], first;
    const char *died, *works;
    bool is_above = false;

    start_pool("-w 2 --jobs orders");
    pool_work_wait(small.units);
    assert_int_equal(pool_children(world.pool.pid, pids), 3);
    first = pids[0] == pool_page() ? pids[1] : pids[0];
    start_top();
    wait_redrawn("works");
    fixture_redis_kill(&world.redis);
    world_sku(77, "late", 1, 100);
    (void)world_order(1, "late", "[{\"sku\": \"late\", \"qty\": 1}]");
    wait_redrawn("redis_down");
    pool_redis_start(&world.redis);
    wait_redrawn(" s LL-4");
    assert_int_equal(kill(first, SIGKILL), 0);
    wait_redrawn(" s worker died");
    press("sss");
    /* Until the one in its place works, which stands above the other. */
    for (int i = 0; i < 120 && !is_above; i++) {
        fixture_pause_ms(i > 0 ? 1000 : 0);
        wait_redrawn(" s worker died");
        died = strstr(t.said, "worker died");
        works = strstr(t.said, "works");
        is_above = works != NULL && works < died && strstr(died, "works") != NULL;
    }
    assert_true(is_above);
    quit_top();
    pool_stop();
}

/* Guarantee: `top` of one database shows no worker of a page of another. */
CASE(top_shows_no_workers_of_another_database)
{
    struct fixture shown, works = world.f;

    fixture_open_migrated(&shown);
    fixture_exec(shown.url,
                 "INSERT INTO ledgerlock.workers (pool, slot, job, host, pid, "
                 "started_at, seen_at, counters) VALUES ('away', 0, 'orders', 'h', 1, "
                 "now(), now() + interval '1 day', '{}')");
    start_pool("-w 2 --jobs billing");
    pool_work_wait((int64_t)small.users * small.periods);
    world.f = shown;
    start_top();
    wait_for("away", 0); /* the page is asked before it is drawn */
    wait_for("q quit", 0);
    assert_null(strstr(t.said, "works"));
    quit_top();
    world.f = works;
    pool_stop();
    fixture_close(&shown);
}

/* Guarantee: Of 64 workers `top` shows in 80 x 24 as many as fit, and counts the
 * others; the other parts keep their places. */
CASE(top_counts_the_workers_that_do_not_fit)
{
    world_do(
        "INSERT INTO workers (pool, slot, job, host, pid, started_at, seen_at, "
        "counters) SELECT 'crowd', g, 'orders', 'h', g, now(), now() + interval '1 "
        "day', '{}' FROM generate_series(0, 63) AS g");
    (void)unsetenv("LEDGERLOCK_HTTP_LISTEN");
    start_top();
    wait_for("and 51 more", 0);
    wait_for("MOST WANTED SKU", 0);
    wait_for("INCIDENT", 0);
    wait_for("q quit", 0);
    quit_top();
}

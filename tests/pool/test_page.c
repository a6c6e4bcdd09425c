/* The page of a pool that runs, read by a real browser, while a worker is killed; and
 * what it says of a whole audit. */
#include <libpq-fe.h>
#include <stdlib.h>

#include "tests/lib/http.h"
#include "tests/lib/session.h"
#include "tests/lib/steps.h"

static const struct pool_work small = {
    .users = 200, .periods = 3, .orders = 60, .units = 40};

WORLD(.poll_ms = 100, .lease_ms = 2000, .work = &small);

/* Guarantee: A browser shows the state of the pool, and the death of a worker, also
 * without JavaScript, in a narrow window and by keyboard. */
CASE(browser_shows_the_pool_and_the_death_of_a_worker)
{
    int port = fixture_free_port();

    pool_start("run -w 2 --now %s --http %d --http-audit-every-s 5",
               pool_work_now(&small), port);
    http_browse(port, "");
    pool_work_wait(&world.f, pool_work_all(&small));
    pool_logged(1, "event=pool.worker_died");
    pool_stop();
    world_audit(pool_work_now(&small), NULL);
}

/* Guarantee: The page of 64 workers shows each in a row of its own that can be read. */
CASE(page_of_64_workers_can_be_read)
{
    int port = fixture_free_port();

    pool_start("run -w 64 --jobs billing --now %s --http %d", pool_work_now(&small),
               port);
    http_browse(port, "--workers 64");
    pool_stop();
}

/* Guarantee: The page and its files are less than 60 kB. */
CASE(page_is_small)
{
    static const char *const files[] = {"/", "/style.css", "/icon.svg", "/page.js",
                                        "/chaos.js"};
    int port = fixture_free_port();
    struct http_answer a;
    size_t n = 0;

    pool_start("run -w 1 --now %s --http %d --allow-chaos", pool_work_now(&small),
               port);
    FIXTURE_AWAIT(http_get(port, &a, "/livez") == 200, "no page");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        assert_int_equal(http_get(port, &a, files[i]), 200);
        n += strlen(a.head) + strlen(a.body);
    }
    assert_in_range(n, 1000, 60000);
    pool_stop();
}

#define FIGURES "<p>0 charged twice, 0 oversold, 0 totals wrong</p>"

/* The next process of the page makes a whole audit at once. */
static void renew_page(void)
{
    assert_int_equal(kill(pool_page(), SIGKILL), 0);
}

/* Guarantee: While the tables cannot be read, /state and /plain say that the verdict is
 * not known, what it was and how long ago, and what is wrong; then it is known again.
 */
CASE(verdict_is_not_known_while_the_tables_cannot_be_read)
{
    int port = fixture_free_port();
    struct http_answer a;

    pool_start("run -w 2 --now %s --http %d --http-audit-every-s 1",
               pool_work_now(&small), port);
    FIXTURE_AWAIT(http_get(port, &a, "/plain") == 200 &&
                      strstr(a.body, FIGURES) != NULL &&
                      strstr(a.body, " SKUs, read 0 s ago.") != NULL &&
                      strstr(a.body, " s ago): no promise is broken.") != NULL,
                  "no verdict: %s", a.body);
    assert_null(strstr(a.body, "class=bad"));
    world_do("ALTER FUNCTION check_newest RENAME TO check_gone;"
             "ALTER FUNCTION report_audit RENAME TO report_gone");
    FIXTURE_AWAIT(
        http_get(port, &a, "/plain") == 200 &&
            strstr(a.body, "Not known; it was: 0 charged twice, 0 oversold") != NULL &&
            strstr(a.body, "<p class=bad>PostgreSQL: ") != NULL &&
            strstr(a.body, " SKUs, read 0 s ago.") == NULL,
        "still known: %s", a.body);
    renew_page();
    FIXTURE_AWAIT(
        http_get(port, &a, "/plain") == 200 &&
            strstr(a.body, "Not known: the tables were not read yet.") != NULL &&
            strstr(a.body, "<p class=bad>The last try of a whole audit: ") != NULL,
        "the audit is not missed: %s", a.body);
    assert_int_equal(http_get(port, &a, "/state"), 200);
    fixture_assert_contains(a.body, "\"verdict\":\"unknown\"");
    world_do("ALTER FUNCTION check_gone RENAME TO check_newest;"
             "ALTER FUNCTION report_gone RENAME TO report_audit");
    renew_page();
    FIXTURE_AWAIT(http_get(port, &a, "/plain") == 200 &&
                      strstr(a.body, FIGURES) != NULL &&
                      strstr(a.body, "class=bad") == NULL,
                  "not known again: %s", a.body);
    pool_stop();
}

static long long state_ms(const struct http_answer *a)
{
    const char *at = strstr(a->body, "\"at_ms\":");

    assert_non_null(at);
    return strtoll(at + strlen("\"at_ms\":"), NULL, 10);
}

/* Guarantee: While a table is locked, the page goes on to show the pool and says that
 * the tables cannot be read; soon after they can it shows them. */
CASE(locked_table_stops_no_page)
{
    int port = fixture_free_port();
    PGconn *holder = session_open(world.owner);
    struct http_answer a;
    long long begun_ms;

    pool_start("run -w 2 --now %s --http %d", pool_work_now(&small), port);
    pool_work_wait(&world.f, pool_work_all(&small));
    FIXTURE_AWAIT(http_get(port, &a, "/state") == 200 &&
                      strstr(a.body, "\"verdict\":\"good\"") != NULL,
                  "no verdict: %s", a.body);
    session_do(holder,
               "BEGIN; LOCK TABLE ONLY ledgerlock.transfers IN ACCESS EXCLUSIVE MODE");
    FIXTURE_AWAIT(http_get(port, &a, "/state") == 200 &&
                      strstr(a.body, "\"verdict\":\"unknown\"") != NULL &&
                      strstr(a.body, "lock timeout") != NULL,
                  "the lock is not seen: %s", a.body);
    begun_ms = state_ms(&a);
    FIXTURE_AWAIT(http_get(port, &a, "/state") == 200 && state_ms(&a) > begun_ms + 3000,
                  "the page stands still: %s", a.body);
    fixture_assert_contains(a.body, "\"verdict\":\"unknown\"");
    PQfinish(holder);
    FIXTURE_AWAIT(http_get(port, &a, "/state") == 200 &&
                      strstr(a.body, "\"verdict\":\"good\"") != NULL,
                  "not known again: %s", a.body);
    pool_stop();
}

/* Guarantee: An invariant that the whole audit finds broken is in /metrics, on the page
 * and in table audits. */
CASE(broken_invariant_is_told)
{
    int port = fixture_free_port();
    struct http_answer a;

    pool_start("run -w 2 --now %s --http %d --http-audit-every-s 1",
               pool_work_now(&small), port);
    pool_work_wait(&world.f, pool_work_all(&small));
    world_do("SET ledgerlock.repair = on;"
             "UPDATE users SET balance_minor = balance_minor + 1 WHERE user_id = 1");
    renew_page();
    FIXTURE_AWAIT(http_get(port, &a, "/metrics") == 200 &&
                      strstr(a.body, "\nledgerlock_audit_broken_invariants 1\n") !=
                          NULL,
                  "nothing broken: %s", a.body);
    FIXTURE_AWAIT(http_get(port, &a, "/plain") == 200 &&
                      strstr(a.body, "BROKEN: balance_is_sum_of_transfers") != NULL,
                  "not on the page: %s", a.body);
    world_is(1, "SELECT count(DISTINCT broken) FROM audits WHERE broken ="
                " '{balance_is_sum_of_transfers}'");
    pool_stop();
}

/* The page of a pool that runs: read by a real browser, while a worker is killed; its
 * verdict, also what it would say if a guard had failed; the keys of
 * workers and of other clients; and the addresses that it is served on. */
#include <arpa/inet.h>
#include <sys/socket.h>

#include "tests/lib/forged_rows.h"
#include "tests/lib/page.h"
#include "tests/lib/shop.h"

static const struct pool_work small = {
    .users = 200, .periods = 3, .orders = 60, .units = 40};

WORLD(.poll_ms = 100, .lease_ms = 2000, .work = &small);

/* Guarantee: A browser shows the state of the pool, and the death of a worker, also in
 * a narrow window and by keyboard. */
CASE(browser_shows_the_pool_and_the_death_of_a_worker)
{
    page_start("run -w 2 --now %s --http-audit-every-s 5", pool_work_now());
    http_browse(page_port, "");
    pool_work_wait(pool_work_all());
    pool_logged(1, "event=pool.worker_died");
    pool_stop();
    world_audit(pool_work_now(), NULL);
}

/* Guarantee: The page of 64 workers shows each in a row of its own that can be read. */
CASE(page_of_64_workers_can_be_read)
{
    page_start("run -w 64 --jobs billing --now %s", pool_work_now());
    http_browse(page_port, "--workers 64");
}

/* Guarantee: The page and its files are less than 60 kB. */
CASE(page_is_small)
{
    static const char *const files[] = {"/", "/style.css", "/icon.svg", "/common.js",
                                        "/page.js"};
    size_t n = 0;

    page_start("run -w 1 --now %s", pool_work_now());
    page_await(200, "/livez", "");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        page_is(200, files[i]);
        n += strlen(page.head) + strlen(page.body);
    }
    assert_in_range(n, 1000, 60000);
}

#define FIGURES "\"oversold\":0,\"wrong_totals\":0,\"charged_twice\":0"

/* As the last answer has it. */
static long long tables_age_ms(void)
{
    static const char key[] = "\"tables_age_ms\":";
    const char *at = strstr(page.body, key);

    assert_non_null(at);
    return strtoll(at + sizeof key - 1, NULL, 10);
}

/* The next process of the page makes a whole audit at once. */
static void renew_page(void)
{
    assert_int_equal(kill(pool_page(), SIGKILL), 0);
}

/* Guarantee: While the tables cannot be read, /state says that the verdict is not
 * known, what it was and how long ago, and what is wrong; then it is known again. */
CASE(verdict_is_not_known_while_the_tables_cannot_be_read)
{
    page_start("run -w 2 --now %s --http-audit-every-s 1", pool_work_now());
    PAGE_AWAIT("/state", FIGURES, "\"verdict\":\"good\"", "\"broken\":[]",
               "\"trouble\":\"\"", "\"audit_trouble\":\"\"");
    world_do("ALTER FUNCTION check_newest RENAME TO check_gone;"
             "ALTER FUNCTION report_audit RENAME TO report_gone");
    PAGE_AWAIT("/state", FIGURES, "\"verdict\":\"unknown\"", "function check_newest(");
    assert_true(tables_age_ms() > 0);
    renew_page();
    PAGE_AWAIT("/state", "!" FIGURES, "\"verdict\":\"unknown\"",
               "!\"audit_trouble\":\"\"");
    assert_true(tables_age_ms() == -1);
    world_do("ALTER FUNCTION check_gone RENAME TO check_newest;"
             "ALTER FUNCTION report_gone RENAME TO report_audit");
    renew_page();
    PAGE_AWAIT("/state", FIGURES, "\"verdict\":\"good\"", "\"trouble\":\"\"",
               "\"audit_trouble\":\"\"");
}

static long long state_ms(void)
{
    PAGE_AWAIT("/state", "\"at_ms\":");
    return strtoll(strstr(page.body, "\"at_ms\":") + strlen("\"at_ms\":"), NULL, 10);
}

/* Guarantee: While a table is locked, the page goes on to show the pool and says that
 * the tables cannot be read; soon after they can it shows them. */
CASE(locked_table_stops_no_page, .close = shop_close)
{
    long long begun_ms;

    page_start("run -w 2 --now %s", pool_work_now());
    pool_work_wait(pool_work_all());
    PAGE_AWAIT("/state", "\"verdict\":\"good\"");
    shop_hold("LOCK TABLE ONLY charges IN ACCESS EXCLUSIVE MODE");
    PAGE_AWAIT("/state", "\"verdict\":\"unknown\"", "lock timeout");
    begun_ms = state_ms();
    FIXTURE_AWAIT(state_ms() > begun_ms + 3000, "the page stands still: %s", page.body);
    fixture_assert_contains(page.body, "\"verdict\":\"unknown\"");
    shop_let_go();
    PAGE_AWAIT("/state", "\"verdict\":\"good\"");
}

/* The time after which the page calls a reading of the tables old. */
static long long stale_ms(void)
{
    PAGE_AWAIT("/state", "\"stale_ms\":");
    return strtoll(strstr(page.body, "\"stale_ms\":") + strlen("\"stale_ms\":"), NULL,
                   10);
}

/* The page leaves the tables alone for fifty times as long as a reading takes. */
/* Guarantee: Figures of tables that are slow to read are not taken for old while the
 * page rests until it reads them again. */
CASE(page_that_rests_long_does_not_take_its_figures_for_old)
{
    page_start("run -w 2 --now %s", pool_work_now());
    FIXTURE_AWAIT(stale_ms() > 0, "never read: %s", page.body);
    world_do(
        "ALTER FUNCTION check_newest RENAME TO check_quick; CREATE FUNCTION"
        " check_newest(timestamptz, integer) RETURNS TABLE (charges bigint, wallets"
        " bigint, skus bigint, charged_twice bigint, oversold bigint, wrong_totals"
        " bigint) LANGUAGE sql SECURITY DEFINER AS 'SELECT pg_sleep(0.4); SELECT *"
        " FROM ledgerlock.check_quick($1, $2)'");
    FIXTURE_AWAIT(stale_ms() > 40000, "%lld ms", stale_ms());
}

/* Guarantee: An invariant that the whole audit finds broken is in /metrics, on the page
 * and in table audits. */
CASE(broken_invariant_is_told)
{
    page_start("run -w 2 --now %s --http-audit-every-s 1", pool_work_now());
    pool_work_wait(pool_work_all());
    world_do("SET ledgerlock.repair = on;"
             "UPDATE users SET balance_minor = balance_minor + 1 WHERE user_id = 1");
    renew_page();
    PAGE_AWAIT("/metrics", "\nledgerlock_audit_broken_invariants 1\n");
    PAGE_AWAIT("/state", "\"broken\":[\"balance_is_sum_of_ledger\"]",
               "\"verdict\":\"bad\"");
    world_is(1, "SELECT count(DISTINCT broken) FROM audits WHERE broken ="
                " '{balance_is_sum_of_ledger}'");
}

/* ---- if a guard had failed ---- */

static void open_forged(void)
{
    static const struct world_plan plan = {.poll_ms = 100};

    world_open_as(&plan);
    super_do("%s", forged_rows);
}

/* Guarantee: The page says 0 charged twice, 0 oversold and 0 totals wrong, and 1, 1 and
 * 1 as soon as one of each is there. */
CASE(page_says_so_in_red, .open = open_forged)
{
    page_start("run -w 1 --http-audit-every-s 0");
    FIXTURE_AWAIT(super_ask("SELECT count(*) FROM ledgerlock.charges") == 6 &&
                      super_ask("SELECT count(*) FROM ledgerlock.orders WHERE state = "
                                "'pending'") == 1,
                  "what is due is not worked");
    PAGE_AWAIT("/state", FIGURES, "\"verdict\":\"good\"");
    super_do(FORGED_BY_HAND FORGED_CHARGE FORGED_UNIT FORGED_WALLET);
    PAGE_AWAIT("/state", "\"oversold\":1,\"wrong_totals\":1,\"charged_twice\":1",
               "\"verdict\":\"bad\"");
    http_browse(page_port, "--red");
}

/* ---- keys, addresses ---- */

static void open_ring(void)
{
    static const struct world_plan plan = {
        .poll_ms = 100, .lease_ms = 2000, .redis = true};

    world_open_as(&plan);
    world_user(7, 1000000);
    world_sku(5, "ring", 1000, 1);
}

static void start(void)
{
    page_start("run -w 1 --now 2024-01-02T00:00:00Z");
    page_await(200, "/readyz", "");
}

/* The worker of orders is in no batch, and its last one is still there. */
static bool shows_last_batch(void)
{
    const char *at =
        PAGE_HAS("/state", "\"slot\":1,") ? strstr(page.body, "\"slot\":1,") : NULL;

    at = at != NULL ? strstr(at, "\"holds\":false") : NULL;
    return at != NULL && strstr(at, "\"keys\":[\"user:7\",\"sku:5\"]") != NULL;
}

static void order_of(int64_t i)
{
    char key[32];

    (void)snprintf(key, sizeof key, "order-%lld", (long long)i);
    (void)world_order(7, key, "[{\"sku\": \"ring\", \"qty\": 1}]");
}

/* Guarantee: The page shows the keys of a worker's last batch, and what is left of
 * their lease, though a batch takes milliseconds. */
CASE(keys_of_the_last_batch_stay_for_a_document, .open = open_ring)
{
    bool is_there = false;

    start();
    /* A page that is late by more than a second missed that batch: another one. */
    for (int64_t n = 1; n <= 50 && !is_there; n++) {
        order_of(n);
        FIXTURE_AWAIT(
            world_ask("SELECT count(*) FROM orders WHERE state = 'pending'") == 0,
            "nobody serves");
        for (int i = 0; i < 20 && !(is_there = shows_last_batch()); i++)
            fixture_pause_ms(100);
    }
    assert_true(is_there);
}

/* Guarantee: The page says which key a worker waits for while another client of Redis
 * holds it, and no longer when it is free. */
CASE(key_of_another_client_is_shown_while_a_worker_waits_for_it, .open = open_ring)
{
    (void)redis_do("SET %suser:7 somebody NX PX 600000", world.f.prefix);
    start();
    order_of(1);
    PAGE_AWAIT("/state",
               "\"key\":\"user:7\",\"holder\":\"another client\",\"waits_ms\":");
    (void)redis_do("DEL %suser:7", world.f.prefix);
    PAGE_AWAIT("/state", "\"busy\":[]");
    FIXTURE_AWAIT(world_ask("SELECT count(*) FROM orders WHERE state = 'fulfilled'") ==
                      1,
                  "nobody serves");
}

static int try_other_address(void)
{
    struct sockaddr_in other = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)page_port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), code;

    assert_int_equal(inet_pton(AF_INET, "127.0.0.2", &other.sin_addr), 1);
    code = connect(fd, (struct sockaddr *)&other, sizeof other);
    (void)close(fd);
    return code;
}

/* Guarantee: A port without an address is served on 127.0.0.1 alone. */
CASE(port_alone_means_loopback)
{
    start();
    assert_int_equal(try_other_address(), -1);
    pool_stop();
    pool_start("run -w 1 --now 2024-01-02T00:00:00Z --http 0.0.0.0:%d", page_port);
    page_await(200, "/readyz", "");
    assert_int_equal(try_other_address(), 0);
}

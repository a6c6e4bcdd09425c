/* explain: the life of a row that a pool has worked, in the order of time, and what the
 * row waits for: its time, a person, its job, a key, a row lock, an older order. */
#include <jansson.h>

#include "tests/lib/runs.h"
#include "tests/lib/shop.h"
#include "tests/lib/steps.h"

GROUP(.open = shop_open, .close = shop_close);

/* The members of a list of the latest document, joined by blanks. */
static const char *joined(const char *list, const char *member)
{
    static char text[1024];
    json_t *doc = json_loads(said.out, 0, NULL), *row;
    size_t i, n = 0;

    assert_non_null(doc);
    text[0] = '\0';
    json_array_foreach(json_object_get(doc, list), i, row)
    {
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i > 0 ? ", " : "",
                              json_string_value(json_object_get(row, member)));
        assert_true(n < sizeof text);
    }
    json_decref(doc);
    return text;
}

static void lived(const char *item, const char *events)
{
    runs(&world.f, 0, "explain %s --json", item);
    assert_string_equal(joined("life", "what"), events);
}

/* The last of the waits has such a detail. */
static void waits_for(const char *item, const char *whats, const char *detail)
{
    runs(&world.f, 0, "explain %s --json", item);
    assert_string_equal(joined("waits", "for"), whats);
    fixture_assert_contains(joined("waits", "detail"), detail);
}

/* ---- the life ---- */

/* User 301 pays the first of two periods. */
static void put_customer(void)
{
    world_user(301, 150);
    world_do("INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor,"
             " currency, anchor_at, unit, every, next_due_at) SELECT 301, 301, 'gold',"
             " 100, 'USD', at, 'day', 10, at"
             " FROM CAST(now() - interval '15 days' AS timestamptz) AS at");
}

/* Guarantee: `explain` tells every charge, decline, later try, refund and incident of a
 * subscription, with period, amount, token, worker and the time of writing. */
CASE(subscription_is_explained_from_its_making_to_its_refund)
{
    put_customer();
    world_runs(0, "run --once -w 1 --jobs billing");
    waits_for("subscription 301", "its time", "period 1 was declined, try 2 is due at");
    world_deposit(301, 2, 100);
    world_do("UPDATE workers SET seen_at = now() - interval '1 minute'");
    waits_for("subscription 301", "a worker, a pool", "try 2 is due since");
    world_runs(0, "run --once -w 1 --jobs billing");
    world_do(
        "SELECT refund(301, 'charge', 301, 1, 40, 'late', 'k');"
        " SELECT log_incident('user:301', 5, 'w', 'lost', 'apply', NULL, 'slow', 0)");
    lived("subscription 301",
          "made, charged, declined, due, charged, refund, incident");
    assert_true(
        said_number("life/1/token") ==
        (double)world_ask("SELECT fence FROM charges WHERE subscription_id = 301"
                          " AND period_no = 0"));
    assert_string_equal(said_text("life/1/worker"),
                        world_text("SELECT worker FROM charges WHERE period_no = 0"
                                   " AND subscription_id = 301"));
    assert_string_equal(
        said_text("life/1/at"),
        world_text("SELECT to_char(min(recorded_at) AT TIME ZONE 'UTC',"
                   " 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') FROM batches WHERE token ="
                   " (SELECT fence FROM charges WHERE subscription_id = 301 AND"
                   " period_no = 0)"));
    assert_true(said_number("life/5/amount_minor") == 40);
    says(&world.f, 0, "period 1: late, 0.40 USD, by ", "explain subscription 301");
    shows(", try 2, 1.00 USD, token ");
    shows("lost, user:301, apply: slow, token 5, by w");
    shows("waits for its time: period 2 is due at ");
}

CASE(life_has_what_support_did)
{
    put_customer();
    world_runs(0, "run --once -w 1 --jobs billing");
    world_do("SELECT write_off(301, 301, 1, 'moved away', 'k');"
             " SELECT pause_subscription(301, 301, 2, 2)");
    lived("subscription 301", "made, charged, declined, written off, skipped");
    fixture_assert_contains(joined("life", "detail"), "period 1: moved away");
    waits_for("subscription 301", "its time", "paused: period 4 is due at ");
    world_do("SELECT park_rows('billing', '{301}', 7, 'w', 'a broken wallet')");
    waits_for("subscription 301", "a person",
              "parked: a broken wallet; ledgerlock parked release subscription:301");
    world_do("SELECT release_rows('billing', '{301}');"
             " SELECT cancel_subscription(301, 301, 'now')");
    lived("subscription 301",
          "made, charged, declined, written off, skipped, parked, released, cancelled");
    waits_for("subscription 301", "nothing", "it is cancelled");
}

CASE(order_is_explained_with_lines_sales_payment_and_return)
{
    int64_t fulfilled, rejected, cancelled;

    world_user(301, 2000);
    fulfilled =
        world_ask("SELECT place_order(301, 'a', '[{\"sku\": \"s0\", \"qty\": 3},"
                  " {\"sku\": \"s1\", \"qty\": 1}]')");
    rejected = world_ask("SELECT place_order(301, 'b', '[{\"sku\": \"s0\", \"qty\":"
                         " 100000}]')");
    world_runs(0, "run --once -w 1 --jobs orders");
    cancelled = world_ask("SELECT place_order(301, 'c', '[{\"sku\": \"s0\", \"qty\":"
                          " 1}]')");
    world_do("SELECT return_units(301, %" PRId64 ", 's0', 2, 'too small', 'k');"
             " SELECT cancel_order(301, %" PRId64 ")",
             fulfilled, cancelled);
    runs(&world.f, 0, "explain order %" PRId64 " --json", fulfilled);
    assert_string_equal(joined("life", "what"),
                        "placed, line, line, fulfilled, sold, sold, paid, returned");
    assert_true(said_number("life/6/amount_minor") == 40);
    assert_true(said_number("life/7/amount_minor") == 20);
    fixture_assert_contains(joined("life", "detail"), "2 of s0: too small");
    assert_string_equal(joined("waits", "for"), "nothing");
    says(&world.f, 0, "out of stock: s0, token ", "explain order %" PRId64, rejected);
    shows("100000 of s0, each, 0.10 USD");
    shows("waits for nothing: it is rejected");
    says(&world.f, 0, "  cancelled   ", "explain order %" PRId64, cancelled);
}

/* ---- what it waits for ---- */

static void report_workers(void)
{
    world_do(
        "INSERT INTO workers VALUES ('p', 0, 'billing', 'h', 1, now(), now() + interval '1"
        " day', '{}');"
        " INSERT INTO workers VALUES ('p', 1, 'orders', 'h', 1, now(), now() +"
        " interval '1 day', '{}')");
}

/* Guarantee: `explain` names what a due row waits for: a held key with its holder and
 * the lease left, a session that holds its row, its paused job, an older order of the
 * same SKU. */
CASE(held_key_is_named_with_its_holder_and_the_lease_left)
{
    report_workers();
    waits_for("subscription 7", "a worker",
              "period 0 is due since 2024-01-01T00:00:00Z");
    (void)shop_key("SET", "user:7", "other PX 600000");
    (void)shop_key("SET", "user:70", "another PX 600000");
    waits_for("subscription 7", "a worker, a lock key", "user:7 is held by other");
    fixture_assert_contains(joined("waits", "detail"), " left");
    (void)shop_key("DEL", "user:7", "");
    (void)shop_key("DEL", "user:70", "");
    (void)shop_key("SET", "sku:68", "other PX 600000");
    waits_for("order 3", "a worker, a lock key", "sku:68 is held by other");
    (void)shop_key("DEL", "sku:68", "");
}

CASE(redis_that_is_down_is_named)
{
    report_workers();
    (void)snprintf(world.f.redis_url, sizeof world.f.redis_url, "unix:///nowhere.sock");
    waits_for("subscription 7", "a worker, Redis", "its locks are unknown: ");
}

static const struct holder {
    const char *name, *role, *sql, *also;
} holders[] = {
    {"worker_sees_one", "ledgerlock_worker",
     "SET application_name = 'till 3'; SELECT FROM users WHERE user_id = 7 FOR UPDATE",
     "SELECT"},
    {"reader_sees_one", "ledgerlock_reader",
     "SET application_name = 'till 3'; UPDATE users SET fence = 1 WHERE user_id = 7",
     "SELECT"},
    {"support_sees_one_of_several", "ledgerlock_support",
     "SET application_name = 'till 3'; SELECT FROM users WHERE user_id = 7 FOR NO KEY"
     " UPDATE",
     "SELECT FROM users WHERE user_id = 7 FOR KEY SHARE"},
};

/* A row lock that several share is another number in the row. */
CASE_ROWS(held_row_is_named_with_its_session, holders)
{
    char detail[128];

    report_workers();
    fixture_become(&world.f, row->role);
    shop_hold(row->sql);
    world_do("%s", row->also);
    (void)snprintf(detail, sizeof detail,
                   "user:7 is locked by session %" PRId64 " (till 3)",
                   world_ask("SELECT pid FROM pg_stat_activity WHERE application_name ="
                             " 'till 3'"));
    waits_for("subscription 7", "a worker, a row lock", detail);
    waits_for("order 7", "a worker, an older order, a row lock", detail);
    shop_let_go();
    FIXTURE_AWAIT(world_ask("SELECT count(*) FROM pg_stat_activity WHERE"
                            " application_name = 'till 3'") == 0,
                  "the session does not end");
    waits_for("subscription 7", "a worker", "is due since");
}

CASE(order_names_the_older_one_of_the_same_sku)
{
    report_workers();
    shop_order(9, SHOP_SKU, 2);
    waits_for("order 100001", "a worker", "due since 2023-12-31T20:00:00Z");
    waits_for(
        "order 100002", "a worker, an older order",
        "order 100001 was placed before and wants a SKU of this one, too; 1 such");
}

CASE(paused_job_and_missing_pool_are_named)
{
    world_do("SELECT pause_job('billing', 'the bank is closed')");
    waits_for("subscription 7", "a worker, its job, a pool", ": the bank is closed");
    waits_for("order 1", "a worker, a pool", "no worker of orders has reported");
}

/* ---- wrong use ---- */

CASE(row_that_is_not_there_is_an_error)
{
    says(&world.f, 2, "there is no subscription 4711", "explain subscription 4711");
    says(&world.f, 2, "there is no order 4711", "explain order 4711 --json");
    says(&world.f, 2, "no number of a subscription", "explain subscription x7");
    says(&world.f, 2, "either `subscription ID` or `order ID`", "explain user 7");
}

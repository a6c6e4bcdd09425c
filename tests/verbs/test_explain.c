/* explain: what the program prints of a row, and what the row waits for in Redis and in
 * other sessions. Its life and its other waits are told in tests/sql/windows.sql. */
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

/* The last of the waits has such a detail. */
static void waits_for(const char *item, const char *whats, const char *detail)
{
    runs(&world.f, 0, "explain %s --json", item);
    assert_string_equal(joined("waits", "for"), whats);
    fixture_assert_contains(joined("waits", "detail"), detail);
}

/* ---- the life ---- */

CASE(life_is_printed_for_people)
{
    world_user(301, 150);
    world_do("INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor,"
             " currency, anchor_at, unit, every, next_due_at) SELECT 301, 301, 'gold',"
             " 100, 'USD', at, 'day', 10, at"
             " FROM CAST(now() - interval '15 days' AS timestamptz) AS at");
    world_runs(0, "run --once -w 1 --jobs billing");
    world_do("SELECT refund(301, 'charge', 301, 0, 40, 'late', 'k'),"
             " log_incident('user:301', 5, 'w', 'lost', 'apply', NULL, 'slow', 0)");
    says(&world.f, 0, "period 0: late, 0.40 USD, by ", "explain subscription 301");
    shows(", try 1; past due");
    shows(", 1.00 USD, token ");
    shows("lost, user:301, apply: slow, token 5, by w");
    shows("waits for its time: past due: period 1 was declined, try 2 is due at ");
    world_runs(0, "run --once -w 1 --jobs orders");
    says(&world.f, 0, " of s", "explain order 1");
    shows("waits for nothing: it is fulfilled");
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

/* ---- wrong use ---- */

CASE(row_that_is_not_there_is_an_error)
{
    says(&world.f, 2, "there is no subscription 4711", "explain subscription 4711");
    says(&world.f, 2, "there is no order 4711", "explain order 4711 --json");
    says(&world.f, 2, "no number of a subscription", "explain subscription x7");
    says(&world.f, 2, "either `subscription ID` or `order ID`", "explain user 7");
}

/* shop functions: SKUs and their prices, and what a page of a customer shows. */
#include "tests/lib/client.h"
#include "tests/lib/runs.h"
#include "tests/lib/session.h"

static char shop[FIXTURE_URL]; /* of the role that a web shop has, and no other */

/* User 1 has two subscriptions and three orders, user 2 one of each; user 3 is closed.
 */
static void prepare(void)
{
    client_open();
    fixture_url_as(&world.f, "ledgerlock_shop", shop, sizeof shop);
    (void)strncat(shop, "&options=-csearch_path%3Dledgerlock",
                  sizeof shop - strlen(shop) - 1);
    world_sku(65, "A", 10, 250);
    world_user(1, 1000);
    world_user(2, 1000);
    world_user(3, 0);
    world_do(
        "SELECT close_account(3);"
        "SELECT subscribe(u, p, 100, 'USD', 'day', 1, now() - interval '1 hour', 0, p)"
        " FROM (VALUES (1, 'gold'), (1, 'silver'), (2, 'gold')) AS v (u, p);"
        "SELECT place_order(u, k, '[{\"sku\": \"A\", \"qty\": 1}, {\"sku\": \"A\", \"qty\": 2}]')"
        " FROM (VALUES (1, 'a'), (1, 'b'), (1, 'c'), (2, 'a')) AS v (u, k)");
}

WORLD(.role = "ledgerlock_owner", .also = prepare);

static const char *asks(const char *sql)
{
    static char text[1024];

    fixture_query_text(shop, sql, text, sizeof text);
    return text;
}

/* ---- SKUs ---- */

/* Guarantee: A SKU made twice is one SKU, also after its price changed; with another
 * currency or first price it is refused. */
CASE(sku_made_twice_is_one)
{
    int64_t id = ask("SELECT create_sku('NEW', 500, 'USD')");

    assert_int_equal(ask("SELECT create_sku('NEW', 500, 'USD')"), id);
    assert_int_equal(ask("SELECT set_sku_price('NEW', 700)"), 700);
    assert_int_equal(ask("SELECT create_sku('NEW', 500, 'USD')"), id);
    refused("LL001", "SELECT create_sku('NEW', 700, 'USD')");
    refused("LL001", "SELECT create_sku('NEW', 500, 'EUR')");
    world_expect("NEW 0 0 700 USD",
                 "SELECT concat_ws(' ', sku, initial_qty, on_hand, unit_price_minor,"
                 " currency) FROM stock WHERE sku <> 'A'");
    assert_int_equal(ask("SELECT receive_stock('NEW', '1', 5)"), 5);
    world_runs(0, "run --once");
    world_audit(NULL, NULL);
}

/* Guarantee: A SKU that two sessions make at once is one SKU, and both get its number.
 */
CASE(sku_from_two_sessions_at_once_is_one)
{
    PGconn *a = session_open(client), *b = session_open(client);
    PGresult *first, *second;

    session_do(b, "SET lock_timeout = '60s'");
    session_do(a, "BEGIN");
    first = session_ask(a, "SELECT create_sku('NEW', 500, 'USD')");
    session_sticks(b, "SELECT create_sku('NEW', 500, 'USD')", world.owner);
    session_do(a, "COMMIT");
    second = PQgetResult(b);
    promise_int_equal(session_number(second, 0, 0), session_number(first, 0, 0));
    PQclear(first);
    PQclear(second);
    PQfinish(a);
    PQfinish(b);
    world_expect("1", "SELECT count(*) FROM stock WHERE sku = 'NEW'");
}

/* Guarantee: A change of a price that is made again after somebody else's changes
 * nothing, if it names the price that it was made from. */
CASE(late_change_of_a_price_undoes_nothing)
{
    assert_int_equal(ask("SELECT set_sku_price('A', 300, 250)"), 300);
    assert_int_equal(ask("SELECT set_sku_price('A', 300, 250)"), 300);
    assert_int_equal(ask("SELECT set_sku_price('A', 400, 300)"), 400);
    refused("LL003", "SELECT set_sku_price('A', 300, 250)");
    world_expect(
        "250 300 400",
        "SELECT string_agg(unit_price_minor::text, ' ' ORDER BY entry_id) FROM stock_journal");
}

/* Guarantee: Of two changes of one price at once the second counts from the first. */
CASE(two_changes_of_a_price_at_once_follow_each_other)
{
    PGconn *a = session_open(client), *b = session_open(client);

    session_do(b, "SET lock_timeout = '60s'");
    session_do(a, "BEGIN; SELECT set_sku_price('A', 300, 250)");
    session_sticks(b, "SELECT set_sku_price('A', 400, 250)", world.owner);
    session_do(a, "COMMIT");
    session_refused("LL003", PQgetResult(b));
    PQfinish(a);
    PQfinish(b);
    world_expect("300", "SELECT unit_price_minor FROM stock");
}

/* Guarantee: An order keeps the prices of its moment. */
CASE(order_keeps_its_price)
{
    world_do("SELECT set_sku_price('A', 1)");
    world_runs(0, "run --once");
    world_expect("750",
                 "SELECT max(total_minor) FROM orders WHERE state = 'fulfilled'");
    world_audit(NULL, NULL);
}

/* ---- what a page shows ---- */

/* clang-format off */
static const struct {
    const char *name, *must, *sql;
} pages[] = {
    {"balance",            "1000 USD t", "SELECT format('%s %s %s', balance_minor, currency, closed_at IS NULL) FROM balance(1)"},
    {"closed_account",     "0 t",        "SELECT format('%s %s', balance_minor, closed_at <= now()) FROM balance(3)"},
    {"orders_newest_first", "c,b,a",     "SELECT string_agg(idempotency_key, ',') FROM orders_of(1)"},
    {"orders_in_pages",    "c,b a",      "SELECT concat_ws(' ', (SELECT string_agg(idempotency_key, ',') FROM orders_of(1, NULL, 2)),"
                                         " (SELECT string_agg(idempotency_key, ',') FROM orders_of(1, 2, 2)))"},
    {"lines_of_an_order",  "[{\"qty\": 3, \"sku\": \"A\", \"unit_price_minor\": 250}]", "SELECT DISTINCT lines::text FROM orders_of(1)"},
    {"order_under_a_key",  "2 pending 750 USD", "SELECT format('%s %s %s %s', order_id, state, total_minor, currency) FROM order_by_key(1, 'b')"},
    {"order_of_its_user",  "4",          "SELECT order_id::text FROM order_by_key(2, 'a')"},
    {"subscriptions",      "2 silver 100 active 0,1 gold 100 active 0",
     "SELECT string_agg(concat_ws(' ', subscription_id, plan, amount_minor, state, next_period_no), ',') FROM subscriptions_of(1)"},
    {"nobody's_charges",   "0",          "SELECT count(*)::text FROM charges_of(2, 1)"},
};

/* clang-format on */

/* Guarantee: The role of a web shop reads the wallet, the orders, the subscriptions and
 * the charges of the user that it names, and of nobody else. */
CASE_ROWS(page_of_a_customer_has, pages)
{
    promise_string_equal(asks(row->sql), row->must);
}

/* As terms_of says, before new terms and in them. */
CASE(page_has_the_terms_of_the_next_period)
{
    world_do("SELECT set_terms(1, 1, 2, 'duo', 2, 70)");
    for (int period = 0; period <= 3; period++) {
        world_expect(
            "t",
            "SELECT (s.plan, s.quantity, s.unit_price_minor, s.amount_minor) = (t.plan, t.quantity,"
            " t.unit_minor, t.amount_minor) FROM subscriptions_of(1) AS s, terms_of(s.subscription_id,"
            " s.next_period_no) AS t WHERE s.subscription_id = 1");
        world_do("SELECT pause_subscription(1, 1, 1, %d)", period);
    }
    assert_string_equal(
        asks(
            "SELECT string_agg(concat_ws(' ', plan, amount_minor, next_period_no), ',') FROM"
            " subscriptions_of(1) WHERE subscription_id = 1"),
        "duo 140 4");
}

#define CHARGES(sql)                                                                   \
    "SELECT string_agg(concat_ws(' ', period_no, state, amount_minor, currency, tries), ',') FROM " sql

/* A free period, one that is skipped, and one that nobody can pay. */
CASE(page_has_the_charges_in_pages)
{
    world_do(
        "SELECT withdraw(1, 'USD', 1000, 'asked for', 'w');"
        "SELECT subscribe(1, 'trial', 100, 'USD', 'day', 1, now() - interval '23 hours', 1, 't')");
    world_runs(0, "run --once --jobs billing");
    world_do("SELECT pause_subscription(1, 4, 1, 1)");
    assert_string_equal(asks(CHARGES("charges_of(1, 4)")),
                        "1 skipped 100 USD 0,0 captured 0 USD 1");
    assert_string_equal(asks(CHARGES("charges_of(1, 4, NULL, 1)")),
                        "1 skipped 100 USD 0");
    assert_string_equal(asks(CHARGES("charges_of(1, 4, 1, 1)")), "0 captured 0 USD 1");
    assert_string_equal(asks(CHARGES("charges_of(1, 1)")), "0 declined 100 USD 1");
}

/* ---- refusals ---- */

#define NONE "none" /* no row, and no error */
#define SOME "00000"

/* clang-format off */
static const struct {
    const char *name, *state, *sql;
} calls[] = {
    {"sku",                       SOME,    "create_sku('N', 1, 'USD')"},
    {"sku_that_is_free",          SOME,    "create_sku('F', 0, 'USD')"},
    {"sku_of_no_name",            "LL002", "create_sku(NULL, 1, 'USD')"},
    {"sku_of_an_empty_name",      "LL002", "create_sku('', 1, 'USD')"},
    {"sku_of_a_name_too_long",    "LL002", "create_sku(repeat('s', 256), 1, 'USD')"},
    {"sku_of_no_price",           "LL002", "create_sku('N', NULL, 'USD')"},
    {"sku_below_zero",            "LL002", "create_sku('N', -1, 'USD')"},
    {"sku_of_no_currency",        "LL002", "create_sku('N', 1, NULL)"},
    {"sku_of_small_letters",      "LL002", "create_sku('N', 1, 'usd')"},
    {"price_that_it_has",         SOME,    "set_sku_price('A', 250, 7)"},
    {"price_of_no_sku",           "LL002", "set_sku_price(NULL, 1)"},
    {"price_of_an_empty_sku",     "LL002", "set_sku_price('', 1)"},
    {"price_of_an_unknown_sku",   "LL002", "set_sku_price('Z', 1)"},
    {"price_of_none",             "LL002", "set_sku_price('A', NULL)"},
    {"price_below_zero",          "LL002", "set_sku_price('A', -1)"},
    {"price_from_another",        "LL003", "set_sku_price('A', 1, 2)"},
    {"price",                     SOME,    "set_sku_price('A', 1)"},
    {"balance",                   SOME,    "balance(1)"},
    {"balance_of_no_user",        NONE,    "balance(NULL)"},
    {"balance_of_an_unknown",     NONE,    "balance(99)"},
    {"orders",                    SOME,    "orders_of(1)"},
    {"orders_behind_the_last",    NONE,    "orders_of(1, 1)"},
    {"orders_of_no_user",         NONE,    "orders_of(NULL)"},
    {"orders_of_an_unknown",      NONE,    "orders_of(99)"},
    {"orders_without_a_limit",    "LL002", "orders_of(1, NULL, NULL)"},
    {"orders_of_limit_0",         "LL002", "orders_of(1, NULL, 0)"},
    {"orders_of_limit_1001",      "LL002", "orders_of(1, NULL, 1001)"},
    {"key",                       SOME,    "order_by_key(1, 'a')"},
    {"key_of_none",               NONE,    "order_by_key(1, NULL)"},
    {"key_that_is_empty",         NONE,    "order_by_key(1, '')"},
    {"key_of_another",            NONE,    "order_by_key(2, 'b')"},
    {"subscriptions",             SOME,    "subscriptions_of(1)"},
    {"subscriptions_of_none",     NONE,    "subscriptions_of(NULL)"},
    {"subscriptions_of_unknown",  NONE,    "subscriptions_of(99)"},
    {"charges",                   SOME,    "charges_of(2, 3)"},
    {"charges_behind_the_first",  NONE,    "charges_of(2, 3, 0)"},
    {"charges_behind_nothing",    NONE,    "charges_of(2, 3, -9223372036854775808)"},
    {"charges_behind_all",        SOME,    "charges_of(2, 3, 9223372036854775807)"},
    {"charges_of_another",        NONE,    "charges_of(1, 3)"},
    {"charges_of_no_user",        NONE,    "charges_of(NULL, 3)"},
    {"charges_of_none",           NONE,    "charges_of(2, NULL)"},
    {"charges_without_a_limit",   "LL002", "charges_of(2, 3, NULL, NULL)"},
    {"charges_of_limit_0",        "LL002", "charges_of(2, 3, NULL, 0)"},
    {"decisions",                 SOME,    "decisions_since()"},
    {"decisions_behind_none",     SOME,    "decisions_since(NULL)"},
    {"decisions_of_an_empty_one", "LL002", "decisions_since('')"},
    {"decisions_of_a_word",       "LL002", "decisions_since('yesterday')"},
    {"decisions_of_three_parts",  "LL002", "decisions_since('7.1.1')"},
    {"decisions_of_many_digits",  "LL002", "decisions_since('9999999999999999999')"},
    {"decisions_ahead",           "LL002", "decisions_since('99999999999')"},
    {"decisions_without_a_limit", "LL002", "decisions_since(NULL, NULL)"},
    {"decisions_of_limit_0",      "LL002", "decisions_since(NULL, 0)"},
    {"decisions_of_limit_1001",   "LL002", "decisions_since(NULL, 1001)"},
    {"cursor",                    SOME,    "decisions_from()"},
    {"cursor_of_no_time",         "LL002", "decisions_from(NULL)"},
    {"cursor_without_end",        "LL002", "decisions_from('infinity')"},
};

/* clang-format on */

static const char *const levels[] = {"read committed", "repeatable read",
                                     "serializable"};

/* NONE, SOME, or the SQLSTATE. */
static const char *outcome(PGconn *conn, const char *call)
{
    static char state[8];
    char sql[160];
    PGresult *res;

    (void)snprintf(sql, sizeof sql, "SELECT * FROM %s", call);
    res = PQexec(conn, sql);
    (void)snprintf(state, sizeof state, "%s",
                   PQresultStatus(res) != PGRES_TUPLES_OK
                       ? PQresultErrorField(res, PG_DIAG_SQLSTATE)
                   : PQntuples(res) == 0 ? NONE
                                         : SOME);
    PQclear(res);
    return state;
}

/* Each call behind a statement that begins a transaction, or does not. */
static void answers_alike(PGconn *conn, const char *level, const char *begin)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const char *is;

        session_do(conn, begin);
        is = outcome(conn, calls[i].sql);
        if (strcmp(is, calls[i].state) != 0)
            promise_broken("%s; %s: %s: %s, not %s", level, begin, calls[i].sql, is,
                           calls[i].state);
        if (strncmp(begin, "BEGIN", 5) == 0)
            session_do(conn, "ROLLBACK");
    }
    world_do(
        "SET ledgerlock.repair = on; DELETE FROM stock_journal WHERE sku_id <> 65;"
        "DELETE FROM stock WHERE sku_id <> 65; UPDATE stock SET unit_price_minor = 250");
}

/* Guarantee: The functions of a shop answer alike at any isolation level, by themselves
 * and in a transaction, and an argument that is null, empty or unknown is an error or
 * no row. */
CASE(shop_is_answered_alike_at_any_level)
{
    world_runs(0, "run --once --jobs billing");
    FIXTURE_AWAIT(world_ask("SELECT feed_end() > feed_newest()"),
                  "somebody holds up the feed");
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        PGconn *conn = session_open(client);
        char sql[80];

        (void)snprintf(sql, sizeof sql, "SET default_transaction_isolation = '%s'",
                       levels[i]);
        session_do(conn, sql);
        answers_alike(conn, levels[i], "SELECT 1");
        answers_alike(conn, levels[i], "BEGIN; SELECT * FROM balance(1)");
        answers_alike(conn, levels[i], "BEGIN; SELECT cancel_order(1, 1)");
        PQfinish(conn);
    }
}

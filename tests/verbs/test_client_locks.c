/* client functions of two sessions at once: each waits for the rows that it decides
 * about before it reads or writes anything else, and answers by what the other wrote.
 */
#include "tests/lib/runs.h"
#include "tests/lib/session.h"

static struct fixture shop, f; /* f: a copy for each case */
static char client[FIXTURE_URL];

/* User 1 has 690, has paid 100 for a period of ten days that is running, and 210 for
 * three units of A; order 2 is pending. User 2 cannot pay 50. Subscription 3 of user 3
 * is parked. User 4 has nothing. Subscription 4 of user 1 is due. */
static void open_shop(void)
{
    fixture_open_migrated(&shop);
    fixture_exec(
        shop.url,
        "SET search_path = ledgerlock;"
        "INSERT INTO users (user_id, currency) SELECT n, 'USD' FROM generate_series(1, 4) AS n;"
        "INSERT INTO stock (sku, initial_qty, on_hand, unit_price_minor, currency) VALUES ('A', 10, 10, 70, 'USD');"
        "SELECT deposit(1, 'USD', 1000, '1'), deposit(2, 'USD', 10, '1');"
        "INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, every, next_due_at)"
        " SELECT n, n, 'p', 150 - 50 * n, 'USD', at, 'day', 10, at FROM generate_series(1, 3) AS n,"
        " CAST(now() - interval '49 hours' AS timestamptz) AS at;"
        "ALTER TABLE subscriptions ALTER subscription_id RESTART WITH 100;"
        "ALTER TABLE users ALTER user_id RESTART WITH 100;"
        "SELECT place_order(1, 'k', '[{\"sku\": \"A\", \"qty\": 3}]')");
    runs(&shop, 0, "run --once");
    fixture_exec(
        shop.url,
        "SET search_path = ledgerlock; SELECT place_order(1, 'l', '[{\"sku\": \"A\", \"qty\": 1}]');"
        "UPDATE subscriptions SET state = 'parked' WHERE subscription_id = 3;"
        "INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency, anchor_at, unit, next_due_at)"
        " SELECT 4, 1, 'due', 10, 'USD', at, 'month', at FROM CAST(now() - interval '1 hour' AS timestamptz) AS at");
}

static void close_shop(void)
{
    fixture_close(&shop);
}

static void open_copy(void)
{
    fixture_copy(&f, &shop, "");
    fixture_url_as(&f, "ledgerlock_test_client", client, sizeof client);
}

static void close_copy(void)
{
    fixture_close(&f);
}

GROUP(.start = open_shop, .stop = close_shop, .open = open_copy, .close = close_copy);

/* The limit ends a hang; 60 s later nothing waits any more. */
#define BEGIN "SET lock_timeout = '60s'; BEGIN"

/* ---- the lock comes first ---- */

#define SHARE "FOR SHARE", "FOR KEY SHARE"

/* clang-format off */
static const struct {
    const char *name, *call, *locks;
    const char *stops, *passes; /* how another session has locked that row */
} locks[] = {
    {"deposit",              "deposit(1, 'USD', 1, 'x')",                            "users WHERE user_id = 1", SHARE},
    {"withdraw",             "withdraw(1, 'USD', 1, 'r', 'x')",                      "users WHERE user_id = 1", SHARE},
    {"refund",               "refund(1, 'charge', 1, 0, 1, 'r', 'x')",               "users WHERE user_id = 1", SHARE},
    {"void_entry",        "void_entry(1, 'charge', 1, 0, 'r', 'x')",           "users WHERE user_id = 1", SHARE},
    {"return_units",         "return_units(1, 1, 'A', 1, 'r', 'x')",                 "users WHERE user_id = 1", SHARE},
    {"return_units_sku",     "return_units(1, 1, 'A', 1, 'r', 'x')",                 "stock WHERE sku_id = 1", SHARE},
    {"receive_stock",        "receive_stock('A', 'x', 1)",                             "stock WHERE sku_id = 1", SHARE},
    {"adjust_stock",         "adjust_stock('A', 1, 'r', 'x')",                       "stock WHERE sku_id = 1", SHARE},
    {"set_sku_price",        "set_sku_price('A', 80)",                               "stock WHERE sku_id = 1", SHARE},
    {"write_off",            "write_off(2, 2, 0, 'r', 'x')",                         "users WHERE user_id = 2", SHARE},
    {"write_off_parked",     "write_off(2, 2, 0, 'r', 'x')",                         "subscriptions WHERE subscription_id = 2", SHARE},
    {"change_now",           "change_now(1, 1, 'q', 1, 50, 'x')",                    "users WHERE user_id = 1", SHARE},
    {"set_terms",            "set_terms(1, 1, NULL, 'q', 1, 50)",                    "users WHERE user_id = 1", SHARE},
    {"set_price",            "set_price(1, 1, 3, 50)",                               "users WHERE user_id = 1", SHARE},
    {"pause_subscription",   "pause_subscription(1, 1, 1, 1)",                          "users WHERE user_id = 1", SHARE},
    {"resume_subscription",  "resume_subscription(3, 3)",                            "users WHERE user_id = 3", SHARE},
    {"cancel_subscription",  "cancel_subscription(1, 1)",                            "users WHERE user_id = 1", SHARE},
    {"cancel_order",         "cancel_order(1, 2)",                                   "users WHERE user_id = 1", SHARE},
    {"cancel_order_parked",  "cancel_order(1, 2)",                                   "orders WHERE order_id = 2", SHARE},
    {"subscribe",            "subscribe(1, 'n', 1, 'USD', 'day', 1, now(), 0, 'x')", "users WHERE user_id = 1", SHARE},
    {"place_order",          "place_order(1, 'x', '[{\"sku\": \"A\", \"qty\": 1}]')", "users WHERE user_id = 1", "FOR UPDATE", "FOR NO KEY UPDATE"},
    {"close_account",        "close_account(4)",                                     "users WHERE user_id = 4", "FOR KEY SHARE", NULL},
};

/* clang-format on */

/* How many of our tables a session may have written by now. */
static int64_t written(PGconn *conn)
{
    char sql[256];

    (void)snprintf(
        sql, sizeof sql,
        "SELECT count(*) FROM pg_locks JOIN pg_class ON oid = relation WHERE pid = %d AND granted"
        " AND mode = 'RowExclusiveLock' AND relkind IN ('r', 'p')",
        PQbackendPID(conn));
    return fixture_query_int8(f.url, sql);
}

/* The answer to the caller who waited, which must be no error. */
static PGresult *answer(PGconn *conn, const char *sql)
{
    PGresult *res = PQgetResult(conn);

    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQresultErrorMessage(res));
    assert_null(PQgetResult(conn));
    return res;
}

/* Another session has the row of `locks`; the call waits for it, or does not. */
static void meets(const char *call, const char *locked, const char *how, bool waits)
{
    PGconn *other = session_open(f.url), *caller = session_open(client);
    char sql[200];

    session_do(other, "BEGIN");
    (void)snprintf(sql, sizeof sql, "SELECT FROM %s %s", locked, how);
    session_do(other, sql);
    session_do(caller, BEGIN);
    (void)snprintf(sql, sizeof sql, "SELECT %s", call);
    if (waits) {
        session_sticks(caller, sql, f.url);
        assert_int_equal(written(caller), 0);
        session_do(other, "COMMIT");
        PQclear(answer(caller, sql));
    } else {
        session_do(caller, sql);
    }
    PQfinish(caller);
    PQfinish(other);
}

/* Guarantee: A client function waits for whoever has the row that it decides about,
 * before it writes anything, and for nobody who only places an order. */
CASE_ROWS(row_is_locked_first_by, locks)
{
    meets(row->call, row->locks, row->stops, true);
    if (row->passes != NULL)
        meets(row->call, row->locks, row->passes, false);
}

/* ---- the answer tells what the other wrote ---- */

#define SAME NULL
#define ORDER(user) "place_order(" user ", 'x', '[{\"sku\": \"A\", \"qty\": 1}]')"
#define SUBSCRIBE(user)                                                                \
    "subscribe(" user ", 'n', 1, 'USD', 'day', 1, date_trunc('day', now()), 0, 'x')"

/* clang-format off */
struct pair {
    const char *name, *first, *second;
    const char *answer; /* to the second: SQLSTATE or value; SAME: that of the first */
    const char *then;   /* true afterwards */
};

static const struct pair pairs[] = {
    {"withdrawals",              "withdraw(1, 'USD', 600, 'r', 'a')", "withdraw(1, 'USD', 600, 'r', 'b')", "LL003", "(SELECT balance_minor = 90 FROM users WHERE user_id = 1)"},
    {"withdrawal_again",         "withdraw(1, 'USD', 600, 'r', 'a')", "withdraw(1, 'USD', 600, 'r', 'a')", SAME, "(SELECT balance_minor = 90 FROM users WHERE user_id = 1)"},
    {"deposit_again",            "deposit(1, 'USD', 100, 'a')", "deposit(1, 'USD', 100, 'a')", SAME, "(SELECT balance_minor = 790 FROM users WHERE user_id = 1)"},
    {"delivery_again",           "receive_stock('A', 'a', 5)", "receive_stock('A', 'a', 5)", SAME, "(SELECT on_hand = 12 FROM stock)"},
    {"refunds",                  "refund(1, 'charge', 1, 0, 60, 'r', 'a')", "refund(1, 'charge', 1, 0, 60, 'r', 'b')", "LL003", "(SELECT balance_minor = 750 FROM users WHERE user_id = 1)"},
    {"refund_again",             "refund(1, 'charge', 1, 0, NULL, 'r', 'a')", "refund(1, 'charge', 1, 0, NULL, 'r', 'a')", SAME, "(SELECT balance_minor = 790 FROM users WHERE user_id = 1)"},
    {"void_behind_a_refund",     "refund(1, 'charge', 1, 0, 1, 'r', 'a')", "void_entry(1, 'charge', 1, 0, 'r', 'a')", "LL003", "(SELECT balance_minor = 691 FROM users WHERE user_id = 1)"},
    {"void_again",               "void_entry(1, 'charge', 1, 0, 'r', 'a')", "void_entry(1, 'charge', 1, 0, 'r', 'a')", SAME, "(SELECT balance_minor = 790 FROM users WHERE user_id = 1)"},
    {"returns",                  "return_units(1, 1, 'A', 2, 'r', 'a')", "return_units(1, 1, 'A', 2, 'r', 'b')", "LL003", "(SELECT on_hand = 9 FROM stock)"},
    {"return_again",             "return_units(1, 1, 'A', 2, 'r', 'a')", "return_units(1, 1, 'A', 2, 'r', 'a')", SAME, "(SELECT on_hand = 9 FROM stock)"},
    {"adjustments",              "adjust_stock('A', -4, 'r', 'a')", "adjust_stock('A', -4, 'r', 'b')", "LL003", "(SELECT on_hand = 3 FROM stock)"},
    {"adjustment_again",         "adjust_stock('A', -4, 'r', 'a')", "adjust_stock('A', -4, 'r', 'a')", SAME, "(SELECT on_hand = 3 FROM stock)"},
    {"write_off_again",          "write_off(2, 2, 0, 'r', 'a')", "write_off(2, 2, 0, 'r', 'a')", SAME, "(SELECT next_period_no = 1 FROM subscriptions WHERE subscription_id = 2)"},
    {"write_off_of_another_key", "write_off(2, 2, 0, 'r', 'a')", "write_off(2, 2, 0, 'r', 'b')", "LL003", "(SELECT next_period_no = 1 FROM subscriptions WHERE subscription_id = 2)"},
    {"changes",                  "change_now(1, 1, 'small', 1, 50, 'a')", "change_now(1, 1, 'big', 1, 150, 'b')", "70", "(SELECT balance_minor = 655 FROM users WHERE user_id = 1)"},
    {"change_again",             "change_now(1, 1, 'small', 1, 50, 'a')", "change_now(1, 1, 'small', 1, 50, 'a')", SAME, "(SELECT balance_minor = 725 FROM users WHERE user_id = 1)"},
    {"terms_again",              "set_terms(1, 1, 3, 'duo', 2, 80)", "set_terms(1, 1, 3, 'duo', 2, 80)", SAME, "(SELECT count(*) = 1 FROM subscription_terms)"},
    {"price_of_new_terms",       "set_terms(1, 1, 3, 'duo', 2, 80)", "set_price(1, 1, 3, 50)", SAME, "(SELECT (plan, quantity, amount_minor) = ('duo', 2, 100) FROM terms_of(1, 3))"},
    {"pause_again",              "pause_subscription(1, 1, 2, 1)", "pause_subscription(1, 1, 2, 1)", SAME, "(SELECT next_period_no = 3 FROM subscriptions WHERE subscription_id = 1)"},
    {"pause_of_what_is_ended",   "cancel_subscription(1, 1, 'now')", "pause_subscription(1, 1, 1, 1)", "LL003", "(SELECT next_period_no = 1 FROM subscriptions WHERE subscription_id = 1)"},
    {"end_again",                "cancel_subscription(1, 1, 'now')", "cancel_subscription(1, 1, 'now')", SAME, "(SELECT count(*) = 1 FROM events WHERE event = 'cancelled')"},
    {"resume_again",             "resume_subscription(3, 3)", "resume_subscription(3, 3)", "f", "(SELECT state = 'active' FROM subscriptions WHERE subscription_id = 3)"},
    {"order_taken_back_again",   "cancel_order(1, 2)", "cancel_order(1, 2)", "f", "(SELECT count(*) = 1 FROM events WHERE event = 'cancelled')"},
    {"order_again",              ORDER("1"), ORDER("1"), SAME, "(SELECT count(*) = 3 FROM orders)"},
    {"price_that_was_changed",   "set_sku_price('A', 80, 70)", "set_sku_price('A', 90, 70)", "LL003", "(SELECT unit_price_minor = 80 FROM stock)"},
    {"sku_again",                "create_sku('B', 70, 'USD')", "create_sku('B', 70, 'USD')", SAME, "(SELECT count(*) = 2 FROM stock)"},
    {"user_again",               "create_user('ann', 'USD')", "create_user('ann', 'USD')", SAME, "(SELECT count(*) = 5 FROM users)"},
    {"subscription_again",       SUBSCRIBE("4"), SUBSCRIBE("4"), SAME, "(SELECT count(*) = 5 FROM subscriptions)"},
    {"order_of_a_closed_account", "close_account(4)", ORDER("4"), "LL003", "NOT EXISTS (SELECT FROM orders WHERE user_id = 4)"},
    {"deposit_of_a_closed_account", "close_account(4)", "deposit(4, 'USD', 1, 'x')", "LL003", "NOT EXISTS (SELECT FROM wallet_entries WHERE user_id = 4)"},
    {"subscription_of_a_closed_account", "close_account(4)", SUBSCRIBE("4"), "LL003", "NOT EXISTS (SELECT FROM subscriptions WHERE user_id = 4)"},
    {"closing_behind_an_order",  ORDER("4"), "close_account(4)", "LL003", "NOT EXISTS (SELECT FROM events WHERE event = 'closed')"},
    {"closing_behind_a_subscription", SUBSCRIBE("4"), "close_account(4)", "LL003", "NOT EXISTS (SELECT FROM events WHERE event = 'closed')"},
    {"closing_behind_a_deposit", "deposit(4, 'USD', 1, 'x')", "close_account(4)", "LL003", "NOT EXISTS (SELECT FROM events WHERE event = 'closed')"},
};

/* clang-format on */

/* The first session ends its transaction so while the second waits for it. */
static void follows(const char *url, const struct pair *p, const char *ends)
{
    PGconn *a = session_open(url), *b = session_open(url);
    char first[200], second[300], then[200];
    PGresult *told, *res;

    (void)snprintf(first, sizeof first, "SELECT %s", p->first);
    (void)snprintf(second, sizeof second, "SELECT %s", p->second);
    session_do(a, "BEGIN");
    session_do(b, BEGIN);
    told = session_ask(a, first);
    session_sticks(b, second, f.url);
    session_do(a, ends);
    if (p->answer != SAME && strcspn(p->answer, "0123456789") == 2) {
        session_refused(p->answer, PQgetResult(b));
    } else {
        res = answer(b, second);
        assert_string_equal(session_text(res, 0, 0),
                            p->answer != SAME ? p->answer : session_text(told, 0, 0));
        PQclear(res);
        session_do(b, "COMMIT");
    }
    PQclear(told);
    PQfinish(a);
    PQfinish(b);
    (void)snprintf(then, sizeof then, "SELECT (%s)::int", p->then);
    holds(&f, 1, then);
}

/* Guarantee: Of two client functions that two sessions call at once, the second answers
 * by what the first wrote: as at first if it is the same call, and it gives, takes and
 * ends nothing twice. */
CASE_ROWS(second_of_two_sessions_knows_of_the, pairs)
{
    follows(client, row, "COMMIT");
}

CASE(order_behind_one_that_is_rolled_back_is_placed)
{
    static const struct pair twice = {NULL, ORDER("1"), ORDER("1"), "4",
                                      "(SELECT count(*) = 3 FROM orders)"};

    follows(client, &twice, "ROLLBACK");
}

/* ---- beside a worker ---- */

#define CHARGE                                                                         \
    "apply_charges((SELECT fence + 1 FROM users WHERE user_id = 1), 'w', NULL, '{4}'," \
    " ARRAY[(SELECT ctid FROM subscriptions WHERE subscription_id = 4)], '{1}', 1000)"

/* The worker has claimed nothing; a client writes the rows that it reads. */
static const struct pair unclaimed[] = {
    {"deposit", "deposit(1, 'USD', 50, 'k')", CHARGE, "XX000",
     "NOT EXISTS (SELECT FROM charges WHERE subscription_id = 4)"},
    {"cancellation", "cancel_subscription(1, 4)", CHARGE, "XX000",
     "NOT EXISTS (SELECT FROM charges WHERE subscription_id = 4)"},
};

CASE_ROWS(apply_without_a_claim_writes_nothing_beside_a, unclaimed)
{
    follows(f.url, row, "COMMIT");
}

/* Guarantee: A subscription that a worker parks while its period is written off stays
 * parked. */
CASE(period_is_not_written_off_while_a_worker_parks_its_subscription)
{
    static const struct pair parked = {
        NULL, "park_rows('billing', '{2}', 9, 'w', 'why')",
        "write_off(2, 2, 0, 'gone', 'k')", "LL003",
        "(SELECT state = 'parked' FROM subscriptions WHERE subscription_id = 2)"};

    follows(f.url, &parked, "COMMIT");
}

/* ---- others ---- */

/* A month is made once by two who need it at once: the second waits and has it. */
CASE(month_that_two_make_at_once_is_made_once)
{
    static const char make[] = "SELECT make_months('2010-01-01Z', '2010-01-01Z')";
    PGconn *a = session_open(f.url), *b = session_open(f.url);
    PGresult *res;

    session_do(a, "BEGIN");
    session_do(a, make);
    session_sticks(b, make, f.url);
    session_do(a, "COMMIT");
    res = answer(b, make);
    assert_int_equal(session_number(res, 0, 0), 0);
    PQclear(res);
    PQfinish(a);
    PQfinish(b);
}

/* close-month drains those who write orders before it looks: whoever has seen that the
 * month is open must be among them, though the order is not written yet. */
CASE(order_that_has_seen_its_month_open_keeps_it_so)
{
    PGconn *other = session_open(f.url), *caller = session_open(client);
    char state[6];

    session_do(other, "BEGIN; LOCK TABLE stock IN ACCESS EXCLUSIVE MODE");
    session_sticks(caller, "SELECT " ORDER("1"), f.url);
    (void)fixture_sqlstate(
        f.url, "BEGIN; LOCK TABLE ledgerlock.orders IN SHARE MODE NOWAIT", state);
    assert_string_equal(state, "55P03");
    session_do(other, "COMMIT");
    PQclear(answer(caller, "the order"));
    PQfinish(caller);
    PQfinish(other);
}

/* Users are locked in the order of their numbers, so that two of these never wait for
 * each other: subscription 6 is of user 1, and 5 of user 2. */
CASE(release_locks_users_in_their_order)
{
    PGconn *other = session_open(f.url), *caller = session_open(client);

    fixture_exec(
        f.url,
        "SET search_path = ledgerlock; INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor,"
        " currency, anchor_at, unit, next_due_at, state) SELECT 7 - n, n, 'r', 1, 'USD', at, 'day', at, 'parked'"
        " FROM generate_series(1, 2) AS n, now() AS at");
    session_do(other, "BEGIN; SELECT FROM users WHERE user_id = 1 FOR SHARE");
    session_sticks(caller, "SELECT count(*) FROM release_rows('billing', '{5,6}')",
                   f.url);
    holds(
        &f, 1,
        "SELECT count(*) FROM (SELECT FROM users WHERE user_id = 2 FOR SHARE NOWAIT) AS free");
    session_do(other, "COMMIT");
    PQclear(answer(caller, "the release"));
    PQfinish(caller);
    PQfinish(other);
}

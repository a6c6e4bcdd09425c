/* repeats: a call whose answer was lost is made again with the same key, however late
 * and whatever has become of the shop since, and is answered as at first. */
#include "tests/lib/client.h"
#include "tests/lib/session.h"

#define WORKED "2024-04-05T00:00:00Z"
#define AT "'2024-04-05 12:00Z'"
#define LINES(sku, qty) "'[{\"sku\": \"" sku "\", \"qty\": " qty "}]'"

/* clang-format off */
/* In the order in which they are made, by the owner, who may give any time; a pool works between the two parts. */
static const struct call {
    const char *name, *sql;
    const char *now; /* the answer is that of this moment; NULL: the first one */
} calls[] = {
    {"create_user",         "create_user('ann', 'USD')", NULL},
    {"create_user_bob",     "create_user('bob', 'USD')", NULL},
    {"create_user_cid",     "create_user('cid', 'USD')", NULL},
    {"create_sku",          "create_sku('C', 70, 'USD')", NULL},
    {"deposit",             "deposit(1, 'USD', 5000, 'k', '2024-04-01 10:00Z')", "(SELECT balance_minor FROM users WHERE user_id = 1)"},
    {"subscribe",           "subscribe(1, 'p', 100, 'USD', 'day', 10, '2024-04-01Z', 0, 'k')", NULL},
    {"subscribe_bob",       "subscribe(2, 'p', 50, 'USD', 'day', 10, '2024-04-01Z', 0, 'k')", NULL},
    {"subscribe_bob_twice", "subscribe(2, 'q', 60, 'USD', 'day', 10, '2024-04-01Z', 0, 'l')", NULL},
    {"place_order",         "place_order(1, 'k', " LINES("A", "3") ", '2024-04-02Z')", NULL},
    {"place_order_two",     "place_order(1, 'l', " LINES("A", "2") ", '2024-04-02Z')", NULL},
    {"place_order_unknown", "place_order(1, 'm', " LINES("NEW", "2") ", '2024-04-02Z')", NULL},
}, later_calls[] = {
    {"refund",              "refund(1, 'charge', 1, 0, 30, 'late', 'k', " AT ")", NULL},
    {"refund_of_all",       "refund(1, 'charge', 1, 0, NULL, 'late', 'l', " AT ")", NULL},
    {"void_transfer",       "void_transfer(1, 'payment', 2, 0, 'never', 'v', " AT ")", NULL},
    {"return_units",        "return_units(1, 1, 'A', 1, 'broken', 'k', " AT ")", NULL},
    {"receive_stock",       "receive_stock('A', 'k', 5, " AT ")", "(SELECT on_hand FROM stock WHERE sku = 'A')"},
    {"adjust_stock",        "adjust_stock('A', -2, 'lost', 'k', " AT ")", "(SELECT on_hand FROM stock WHERE sku = 'A')"},
    {"withdraw",            "withdraw(1, 'USD', 100, 'asked for', 'k', " AT ")", "(SELECT balance_minor FROM users WHERE user_id = 1)"},
    {"write_off",           "write_off(2, 2, 0, 'gone', 'k', " AT ")", NULL},
    {"change_now",          "change_now(1, 1, 'duo', 2, 80, 'k', " AT ")", NULL},
    {"set_terms",           "set_terms(1, 1, 3, 'trio', 3, 50)", NULL},
    {"set_price",           "set_price(1, 1, 4, 60)", NULL},
    {"pause_subscription",  "pause_subscription(1, 1, 1, 1)", NULL},
    {"cancel_subscription", "cancel_subscription(1, 1, p_at => '2024-05-25Z')", NULL},
    {"close_account",       "close_account(3)", NULL},
};

/* clang-format on */

enum {
    EARLY = sizeof calls / sizeof calls[0],
    LATE = sizeof later_calls / sizeof later_calls[0]
};

static char answers[EARLY + LATE][64]; /* the first ones */

static const struct call *call_of(size_t i)
{
    return i < EARLY ? &calls[i] : &later_calls[i - EARLY];
}

static void make_all(void)
{
    client_open();
    world_do("INSERT INTO stock (sku, initial_qty, on_hand, unit_price_minor, currency)"
             " VALUES ('A', 100, 100, 70, 'USD'), ('B', 100, 100, 70, 'USD')");
    for (size_t i = 0; i < EARLY + LATE; i++) {
        if (i == EARLY)
            world_run(WORKED);
        (void)snprintf(answers[i], sizeof answers[i], "%s",
                       world_text("SELECT %s", call_of(i)->sql));
    }
}

WORLD(.role = "ledgerlock_owner", .also = make_all);

/* ---- however late ---- */

static void work(void)
{
    world_run("2024-07-01T00:00:00Z");
}

static void close_months(void)
{
    world_runs(0, "close-month 2024-04");
    world_runs(0, "close-month 2024-05");
}

/* clang-format off */
/* States of the world, in this order. */
static const struct {
    const char *name, *sql;
    void (*run)(void);
} states[] = {
    {"much later",                    "SELECT 1", NULL},
    {"the prices changed",            "UPDATE stock SET unit_price_minor = 9223372036854775807;"
                                      "INSERT INTO stock (sku, initial_qty, on_hand, unit_price_minor, currency) VALUES ('NEW', 1, 1, 9223372036854775807, 'EUR')", NULL},
    {"the stock is gone",             "SELECT adjust_stock('A', -on_hand, 'sold', 'all') FROM stock WHERE sku = 'A'", NULL},
    {"the subscriptions are parked",  "SELECT park_subscriptions('{1,2,3}', 9, 'w', 'why')", NULL},
    {"they are released",             "SELECT release_subscriptions('{1,2,3}')", NULL},
    {"later periods are worked",      "SELECT 1", work},
    {"the subscriptions are over",    "SELECT cancel_subscription(user_id, subscription_id, 'now') FROM subscriptions", NULL},
    {"the wallet is empty",           "SELECT withdraw(1, 'USD', balance_minor, 'all', 'all') FROM users WHERE user_id = 1", NULL},
    {"the accounts are closed",       "SELECT close_account(1), close_account(2)", NULL},
    {"the months are closed",         "SELECT 1", close_months},
};

/* clang-format on */

static void repeat(const struct call *call, const char *first, const char *state)
{
    PGconn *conn = PQconnectdb(client);
    PGresult *res;
    char sql[400], answer[64];

    (void)snprintf(sql, sizeof sql, "SELECT %s", call->sql);
    res = PQexec(conn, sql);
    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s, when %s: %s", call->name, state, PQresultErrorMessage(res));
    (void)snprintf(answer, sizeof answer, "%s", session_text(res, 0, 0));
    PQclear(res);
    PQfinish(conn);
    if (call->now != NULL)
        first = world_text("SELECT %s", call->now);
    if (strcmp(answer, first) != 0)
        fail_msg("%s, when %s: %s and not %s", call->name, state, answer, first);
}

/* Guarantee: A call that is repeated long after it was made is answered as at first,
 * whatever became of prices, stock, subscriptions, wallets, accounts and months. */
CASE(repeated_call_is_answered_as_at_first)
{
    char rows[64];

    for (size_t k = 0; k < sizeof states / sizeof states[0]; k++) {
        world_do("%s", states[k].sql);
        if (states[k].run != NULL)
            states[k].run();
        (void)snprintf(rows, sizeof rows, "%s", world_totals());
        for (size_t i = 0; i < EARLY + LATE; i++)
            repeat(call_of(i), answers[i], states[k].name);
        assert_string_equal(world_totals(), rows);
    }
    world_runs(0, "audit --sealed");
}

/* ---- whatever else ---- */

#define SUBSCRIBE(words) "subscribe(1, " words ", 'k')"
#define OTHER "LL001"

/* clang-format off */
static const struct {
    const char *name, *answer, *sql;
} others[] = {
    {"user_in_another_currency",        OTHER, "create_user('ann', 'EUR')"},
    {"sku_at_another_price",            OTHER, "create_sku('C', 71, 'USD')"},
    {"sku_in_another_currency",         OTHER, "create_sku('C', 70, 'EUR')"},
    {"deposit_of_more",                 OTHER, "deposit(1, 'USD', 5001, 'k')"},
    {"deposit_of_another_user",         "7",   "deposit(2, 'USD', 7, 'k')"},
    {"order_of_more",                   OTHER, "place_order(1, 'k', " LINES("A", "4") ")"},
    {"order_of_another_sku",            OTHER, "place_order(1, 'k', " LINES("B", "3") ")"},
    {"subscription_to_another_plan",    OTHER, SUBSCRIBE("'q', 100, 'USD', 'day', 10, '2024-04-01Z', 0")},
    {"subscription_at_another_price",   OTHER, SUBSCRIBE("'p', 101, 'USD', 'day', 10, '2024-04-01Z', 0")},
    {"subscription_by_the_week",        OTHER, SUBSCRIBE("'p', 100, 'USD', 'week', 10, '2024-04-01Z', 0")},
    {"subscription_every_eleven",       OTHER, SUBSCRIBE("'p', 100, 'USD', 'day', 11, '2024-04-01Z', 0")},
    {"subscription_from_another_day",   OTHER, SUBSCRIBE("'p', 100, 'USD', 'day', 10, '2024-04-02Z', 0")},
    {"subscription_with_a_trial",       OTHER, SUBSCRIBE("'p', 100, 'USD', 'day', 10, '2024-04-01Z', 1")},
    {"refund_of_a_payment",             OTHER, "refund(1, 'payment', 1, 0, 30, 'late', 'k')"},
    {"refund_of_another_charge",        OTHER, "refund(1, 'charge', 2, 0, 30, 'late', 'k')"},
    {"refund_of_another_period",        OTHER, "refund(1, 'charge', 1, 1, 30, 'late', 'k')"},
    {"refund_of_more",                  OTHER, "refund(1, 'charge', 1, 0, 31, 'late', 'k')"},
    {"refund_by_the_key_of_a_void",     "3",   "refund(1, 'payment', 1, 0, 3, 'late', 'v')"},
    {"void_of_a_charge",                OTHER, "void_transfer(1, 'charge', 2, 0, 'never', 'v')"},
    {"void_of_another_payment",         OTHER, "void_transfer(1, 'payment', 1, 0, 'never', 'v')"},
    {"void_of_another_leg",             OTHER, "void_transfer(1, 'payment', 2, 1, 'never', 'v')"},
    {"return_of_another_order",         OTHER, "return_units(1, 2, 'A', 1, 'broken', 'k')"},
    {"return_of_another_sku",           OTHER, "return_units(1, 1, 'B', 1, 'broken', 'k')"},
    {"return_of_more",                  OTHER, "return_units(1, 1, 'A', 2, 'broken', 'k')"},
    {"delivery_of_more",                OTHER, "receive_stock('A', 'k', 6)"},
    {"delivery_of_another_sku",         "105", "receive_stock('B', 'k', 5)"},
    {"adjustment_by_less",              OTHER, "adjust_stock('A', -1, 'lost', 'k')"},
    {"adjustment_of_another_sku",       "103", "adjust_stock('B', -2, 'lost', 'k')"},
    {"withdrawal_of_more",              OTHER, "withdraw(1, 'USD', 101, 'asked for', 'k')"},
    {"withdrawal_by_the_key_of_a_refund", "1", "(withdraw(1, 'USD', 1, 'asked for', 'l') > 0)::int"},
    {"write_off_of_another_period",     OTHER, "write_off(2, 2, 1, 'gone', 'k')"},
    {"write_off_of_another_subscription", "60", "write_off(2, 3, 0, 'gone', 'k')"},
    {"change_to_another_plan",          OTHER, "change_now(1, 1, 'dua', 2, 80, 'k')"},
    {"change_to_more_units",            OTHER, "change_now(1, 1, 'duo', 3, 80, 'k')"},
    {"change_to_another_price",         OTHER, "change_now(1, 1, 'duo', 2, 81, 'k')"},
    {"pause_of_more_periods",           "LL002", "pause_subscription(1, 1, 2, 1)"},
    {"pause_of_a_period_that_is_paid",  "LL002", "pause_subscription(1, 1, 1, 0)"},
};

/* clang-format on */

/* Guarantee: A key that was used is refused for anything else, and the key of another
 * user, SKU, subscription or function is another one. */
CASE(key_that_was_used_is_no_key_for_another_call)
{
    char sql[300], state[6];

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        (void)snprintf(sql, sizeof sql, "SELECT %s", others[i].sql);
        if (strncmp(others[i].answer, "LL", 2) == 0) {
            if (strcmp(fixture_sqlstate(client, sql, state), others[i].answer) != 0)
                fail_msg("%s: %s and not %s", others[i].name, state, others[i].answer);
        } else if (ask(sql) != atoll(others[i].answer)) {
            fail_msg("%s is not answered %s", others[i].name, others[i].answer);
        }
    }
}

/* client functions: whose row it is, and which times a client may give. */
#include "tests/lib/client.h"
#include "tests/lib/runs.h"

static void prepare(void)
{
    client_open();
    world_do("INSERT INTO users (user_id, currency) VALUES (1, 'USD'), (2, 'USD')");
    world_sku(65, "A", 10, 250);
    world_subscription(1, 1, 100, "2024-01-31Z");
}

WORLD(.role = "ledgerlock_owner", .also = prepare);

#define LINE(sku, qty) "{\"sku\": \"" sku "\", \"qty\": " qty "}"

/* User 3 has paid for a period and an order, and user 4 owes a period. */
static void pay_and_owe(void)
{
    world_user(3, 1000);
    world_user(4, 10);
    world_do("INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor,"
             " currency, anchor_at, unit, every, next_due_at) SELECT n, n, 'p', 100,"
             " 'USD', at, 'day', 10, at FROM generate_series(3, 4) AS n, CAST(now() -"
             " interval '49 hours' AS timestamptz) AS at; SELECT place_order(3, 'k',"
             " '[" LINE("A", "3") "]')");
    world_runs(0, "run --once");
}

/* ---- whose row it is ---- */

/* clang-format off */
/* In the order of their names: whose row it is, and the arguments behind the user. */
static const struct {
    const char *name, *owner, *arguments;
    int reads; /* and finds nothing, where the others refuse */
} theirs[] = {
    {"cancel_order",        "3", "7", 0},
    {"cancel_subscription", "3", "3", 0},
    {"change_now",          "3", "3, 'small', 1, 50, 'c'", 0},
    {"charges_of",          "3", "3", 1},
    {"order_status",        "3", "1", 1},
    {"pause_subscription",  "3", "3, 1, 1", 0},
    {"refund",              "3", "'charge', 3, 0, 1, 'late', 'c'", 0},
    {"resume_order",        "3", "7", 0},
    {"resume_subscription", "1", "1", 0},
    {"return_units",        "3", "1, 'A', 1, 'broken', 'c'", 0},
    {"set_price",           "3", "3, 3, 50", 0},
    {"set_terms",           "3", "3, 3, 'small', 1, 50", 0},
    {"void_transfer",       "3", "'charge', 3, 0, 'never', 'c'", 0},
    {"write_off",           "4", "4, 0, 'gone', 'c'", 0},
};

/* clang-format on */

/* The rows above are of all functions that name a user and something of that user. */
static void assert_all_are_here(void)
{
    char names[400] = "";

    for (size_t i = 0; i < sizeof theirs / sizeof theirs[0]; i++) {
        (void)strcat(names, i > 0 ? " " : "");
        (void)strcat(names, theirs[i].name);
    }
    world_expect(names,
                 "SELECT string_agg(proname, ' ' ORDER BY proname COLLATE \"C\") FROM"
                 " pg_proc WHERE pronamespace = 'ledgerlock'::regnamespace AND"
                 " 'p_user_id' = ANY (proargnames) AND proargnames && '{p_order_id,"
                 " p_subscription_id, p_source}' AND"
                 " has_function_privilege('ledgerlock_test_client', oid, 'EXECUTE')");
}

static void touch(size_t i, const char *user, bool own)
{
    char sql[200];

    (void)snprintf(sql, sizeof sql, "%s %s(%s, %s)%s",
                   theirs[i].reads ? "SELECT count(*) FROM" : "BEGIN; SELECT",
                   theirs[i].name, user, theirs[i].arguments,
                   theirs[i].reads ? "" : "; ROLLBACK");
    if (!theirs[i].reads)
        refused(own ? "00000" : "LL002", sql);
    else if (ask(sql) != own)
        promise_broken("%s", sql);
}

/* Guarantee: A client function refuses what belongs to another user than it names. */
CASE(client_reaches_no_row_of_another_user)
{
    pay_and_owe();
    world_do("INSERT INTO orders (order_id, user_id, idempotency_key, request_hash,"
             " state, total_minor, currency, placed_at) VALUES (7, 3, 'p', '',"
             " 'parked', 0, 'USD', now()); UPDATE subscriptions SET state = 'parked'"
             " WHERE subscription_id = 1");
    assert_all_are_here();
    for (size_t i = 0; i < sizeof theirs / sizeof theirs[0]; i++) {
        touch(i, "2", false);
        touch(i, "NULL", false);
        touch(i, theirs[i].owner, true);
    }
}

/* ---- which time it gives ---- */

#define ORDER_AT(at) "SELECT place_order(1, 'k', '[" LINE("A", "1") "]', " at ")"
#define DEPOSIT_AT(at) "SELECT deposit(1, 'USD', 5, 'k', " at ")"
#define RECEIVE_AT(at) "SELECT receive_stock('A', '1', 5, " at ")"
#define CANCEL_AT(at) "SELECT cancel_subscription(1, 1, p_at => " at ")"
#define RESUME_AT(at) "SELECT resume_subscription(1, 1, 'bill_all', " at ")"
#define NEVER "'infinity'"
#define EVER "'-infinity'"

/* clang-format off */
static const struct {
    const char *name, *state, *sql;
} times[] = {
    {"order_for_ever_ago",       "LL002", ORDER_AT(EVER)},
    {"order_for_never",          "LL002", ORDER_AT(NEVER)},
    {"order_for_null",           "LL002", ORDER_AT("NULL")},
    {"order_of_last_week",       "LL002", ORDER_AT("now() - interval '7 days'")},
    {"order_for_next_week",      "LL002", ORDER_AT("now() + interval '7 days'")},
    {"order_for_tonight",        "00000", ORDER_AT("now() + interval '12 hours'")},
    {"deposit_of_1970",          "LL002", DEPOSIT_AT("'1970-01-01Z'")},
    {"deposit_for_never",        "LL002", DEPOSIT_AT(NEVER)},
    {"deposit_of_next_second",   "LL002", DEPOSIT_AT("now() + interval '1 s'")},
    {"deposit_of_an_hour_ago",   "00000", DEPOSIT_AT("now() - interval '1 hour'")},
    {"delivery_of_1970",         "LL002", RECEIVE_AT("'1970-01-01Z'")},
    {"delivery_for_never",       "LL002", RECEIVE_AT(NEVER)},
    {"delivery_of_next_second",  "LL002", RECEIVE_AT("now() + interval '1 s'")},
    {"delivery_of_an_hour_ago",  "00000", RECEIVE_AT("now() - interval '1 hour'")},
    {"cancel_for_never",         "LL002", CANCEL_AT(NEVER)},
    {"cancel_for_ever_ago",      "LL002", CANCEL_AT(EVER)},
    {"cancel_in_eleven_years",   "LL002", CANCEL_AT("now() + interval '11 years'")},
    {"cancel_in_nine_years",     "00000", CANCEL_AT("now() + interval '9 years'")},
    {"cancel_of_a_week_ago",     "LL002", CANCEL_AT("now() - interval '7 days'")},
    {"cancel_of_an_hour_ago",    "00000", CANCEL_AT("now() - interval '1 hour'")},
    {"resume_for_never",         "LL002", RESUME_AT(NEVER)},
    {"resume_for_ever_ago",      "LL002", RESUME_AT(EVER)},
    {"resume_in_a_year",         "LL002", RESUME_AT("now() + interval '1 year'")},
    {"resume_in_a_week",         "00000", RESUME_AT("now() + interval '7 days'")},
    {"resume_in_33_days",        "LL002", RESUME_AT("now() + interval '33 days'")},
    {"forgive_in_the_next_hour", "LL002", "SELECT resume_subscription(1, 1, 'forgive', now() + interval '1 hour')"},
    {"subscribe_in_two_years",   "LL002", "SELECT subscribe(1, 'n', 5, 'USD', 'month', 1, now() + interval '2 years', 0, 'k')"},
};

/* clang-format on */

/* Guarantee: A client function refuses a time that is not finite or not near to now. */
CASE_ROWS(client_gives_a_time, times)
{
    refused(row->state, row->sql);
}

/* clang-format off */
static const struct {
    const char *name, *call; /* up to its time */
} corrections[] = {
    {"refund",        "refund(3, 'charge', 3, 0, 1, 'late', 'c'"},
    {"void_transfer", "void_transfer(3, 'charge', 3, 0, 'never', 'c'"},
    {"withdraw",      "withdraw(3, 'USD', 1, 'asked for', 'c'"},
    {"return_units",  "return_units(3, 1, 'A', 1, 'broken', 'c'"},
    {"adjust_stock",  "adjust_stock('A', -1, 'lost', 'c'"},
    {"write_off",     "write_off(4, 4, 0, 'gone', 'c'"},
    {"change_now",    "change_now(3, 3, 'small', 1, 50, 'c'"},
};

/* clang-format on */

/* Guarantee: Each correction refuses a time that is not near to now. */
CASE_ROWS(no_time_of_1970_has, corrections)
{
    static const char *const times_of[] = {"'1970-01-01Z'", "now() + interval '1 s'",
                                           "'infinity'", "NULL", "now()"};
    char sql[200];

    pay_and_owe();
    for (size_t i = 0; i < 5; i++) {
        (void)snprintf(sql, sizeof sql, "SELECT %s, %s)", row->call, times_of[i]);
        refused(i < 4 ? "LL002" : "00000", sql);
    }
}

static const struct {
    const char *name, *terms, *at, *ends;
} plans[] = {
    {"every_day", "'day', 1", "2024-03-01T12:00Z", "2024-03-02"},
    {"every_two_weeks", "'week', 2", "2024-03-01Z", "2024-03-13"},
    {"every_month_from_the_31st", "'month', 1", "2025-02-27Z", "2025-02-28"},
    {"every_third_month", "'month', 3", "2025-01-30Z", "2025-01-31"},
    {"every_year", "'year', 1", "2033-01-30Z", "2033-01-31"},
};

CASE_ROWS(cancel_ends_a_plan_of, plans)
{
    world_do("UPDATE subscriptions SET (unit, every) = (%s), next_period_no = 0,"
             " next_due_at = anchor_at",
             row->terms);
    assert_string_equal(
        world_text("SELECT cancel_subscription(1, 1, p_at => '%s') AT TIME ZONE 'UTC'",
                   row->at),
        world_text("SELECT timestamp '%s'", row->ends));
}

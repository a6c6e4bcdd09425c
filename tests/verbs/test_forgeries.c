/* forgeries: a worker's functions, called by a worker that lies. */
#include "tests/lib/forged_rows.h"
#include "tests/lib/runs.h"
#include "tests/lib/session.h"

static struct fixture f;
static PGconn *worker;

static void open_all(void)
{
    char url[FIXTURE_URL];

    fixture_open_migrated(&f);
    fixture_exec(f.url, forged_rows);
    fixture_url_as(&f, "ledgerlock_worker", url, sizeof url);
    worker = session_open(url);
}

static void close_all(void)
{
    PQfinish(worker);
    fixture_close(&f);
}

GROUP(.start = open_all, .stop = close_all);

static PGresult *ask(const char *sql)
{
    return PQexec(worker, sql);
}

#define ALL_OF(table) "(SELECT string_agg(x::text, '' ORDER BY x) FROM " table " AS x)"

/* Every row of every table that a worker's functions write. */
static void read_all(char text[64])
{
    PGresult *res = session_ask(
        worker,
        "SELECT md5(concat(" ALL_OF("users") ", " ALL_OF("stock") ", " ALL_OF("subscriptions") ", " ALL_OF("charges") ", " ALL_OF("orders") ", " ALL_OF("transfers") ", " ALL_OF("stock_movements") ", " ALL_OF(
            "subscription_journal") ", " ALL_OF("order_journal") ", " ALL_OF("batches") ", " ALL_OF("lock_incidents") ", " ALL_OF("months") ", " ALL_OF("lock_token") "))");

    (void)snprintf(text, 64, "%s", session_text(res, 0, 0));
    PQclear(res);
}

#define SUBSCRIPTION(id)                                                               \
    "(SELECT ctid FROM subscriptions WHERE subscription_id = " #id ")"
#define APPLY(token, now, ids, places, payers)                                         \
    "SELECT * FROM apply_charges(" token ", 'w', " now ", '{" ids "}', ARRAY[" places  \
    "], '{" payers "}', 1000)"
#define ONE(token, now, id, payer) APPLY(token, now, #id, SUBSCRIPTION(id), #payer)
#define CHARGE(id, payer) ONE("9", "NULL", id, payer)
#define TWICE(id)                                                                      \
    APPLY("9", "NULL", #id "," #id, SUBSCRIPTION(id) ", " SUBSCRIPTION(id), "1,1")
#define IN_13_HOURS                                                                    \
    "((extract(epoch FROM clock_timestamp()) + 46800) * 1000000)::bigint"
#define MANY(periods)                                                                  \
    "SELECT * FROM apply_charges(9, 'w', NULL, '{4}', ARRAY[" SUBSCRIPTION(            \
        4) "], '{1}', " periods ")"
#define CLAIM(id) "SELECT claim_users(9, '{" #id "}'); "
#define INCIDENT(kind, ms_ago)                                                         \
    "SELECT log_incident('user:1', 1, 'w', '" kind "', 'apply', NULL, '', " ms_ago ")"

#define NOTHING "00000"
#define ARGUMENT "LL002"
#define NOT_ALL "XX000"

/* Calls of a worker, each with the SQLSTATE that answers; NOTHING: nothing is done. */
/* clang-format off */
static const struct {
    const char *name, *state, *sql;
} forgeries[] = {
    {"payer_who_is_another",            NOTHING,  CLAIM(3) CHARGE(4, 3)},
    {"place_of_another",                NOTHING,  CLAIM(1) APPLY("9", "NULL", "4", SUBSCRIPTION(6), "1")},
    {"subscription_twice",              "23505",  CLAIM(1) TWICE(4)},
    {"subscription_that_is_not_due",    NOTHING,  CLAIM(1) CHARGE(1, 1)},
    {"subscription_that_is_cancelled",  NOTHING,  CLAIM(1) CHARGE(3, 1)},
    {"subscription_that_is_unpaid",     NOTHING,  CLAIM(2) CHARGE(5, 2)},
    {"now_is_to_come",                  ARGUMENT, CLAIM(1) ONE("9", "now() + interval '1 s'", 1, 1)},
    {"now_has_no_end",                  ARGUMENT, CLAIM(1) ONE("9", "'infinity'", 1, 1)},
    {"token_is_older_than_the_fence",   NOTHING,  ONE("4", "NULL", 4, 1)},
    {"decline_with_an_older_token",     NOTHING,  ONE("4", "NULL", 7, 2)},
    {"token_beyond_the_end",            ARGUMENT, CLAIM(1) ONE("9006099743113216", "NULL", 4, 1)},
    {"token_of_tonight",                ARGUMENT, CLAIM(1) ONE(IN_13_HOURS, "NULL", 4, 1)},
    {"order_with_a_token_of_tonight",   ARGUMENT, "SELECT * FROM apply_orders(" IN_13_HOURS ", NULL, '{3}', 'w')"},
    {"token_drawn_of_tonight",          ARGUMENT, "SELECT next_token(" IN_13_HOURS ")"},
    {"token_is_none",                   ARGUMENT, CLAIM(1) ONE("NULL", "NULL", 4, 1)},
    {"periods_without_end",             ARGUMENT, CLAIM(1) MANY("NULL")},
    {"more_periods_than_any_setting",   ARGUMENT, CLAIM(1) MANY("1000001")},
    {"months_of_1900",                  NOTHING,  "SELECT keep_months('1900-01-01Z', 2, 1000)"},
    {"months_for_ten_years",            ARGUMENT, "SELECT keep_months(now(), 120, 1000)"},
    {"months_of_next_year",             ARGUMENT, "SELECT keep_months(now() + interval '1 year', 2, 1000)"},
    {"schedule_of_its_own",             "42501",  "INSERT INTO retry_schedules (pauses_s) VALUES ('{31622400}')"},
    {"order_that_is_decided",           NOTHING,  "SELECT * FROM apply_orders(9, NULL, '{1,2}', 'w')"},
    {"order_twice",                     "23505",  "SELECT * FROM apply_orders(9, NULL, '{3,3}', 'w')"},
    {"order_of_tomorrow",               NOTHING,  "SELECT * FROM apply_orders(9, NULL, '{4}', 'w')"},
    {"order_in_advance",                ARGUMENT, "SELECT * FROM apply_orders(9, now() + interval '2 days', '{4}', 'w')"},
    {"order_with_an_older_token",       NOT_ALL,  "SELECT * FROM apply_orders(4, NULL, '{3}', 'w')"},
    {"order_with_a_token_beyond",       ARGUMENT, "SELECT * FROM apply_orders(9007199254740991, NULL, '{3}', 'w')"},
    {"decided_order_parked",            NOTHING,  "SELECT park_orders('{1,2}', 9, 'w', 'why')"},
    {"ended_subscription_parked",       NOTHING,  "SELECT park_subscriptions('{3,5}', 9, 'w', 'why')"},
    {"incident_of_2001",                ARGUMENT, INCIDENT("forced_unlock", "(extract(epoch FROM now() - '2001-01-01') * 1000)::bigint")},
    {"incident_to_come",                ARGUMENT, INCIDENT("lost", "-1")},
    {"incident_of_a_parked_row",        ARGUMENT, INCIDENT("parked", "0")},
    {"incident_of_a_row_given_back",    ARGUMENT, INCIDENT("resumed", "0")},
    {"token_drawn_beyond_the_end",      ARGUMENT, "SELECT next_token(9006099743113215)"},
    {"token_drawn_below_no_floor",      ARGUMENT, "SELECT next_token(NULL)"},
};

/* clang-format on */

/* Guarantee: The functions of a worker believe nothing: a false payer, place, time or
 * token changes nothing. */
CASE_ROWS(changes_nothing, forgeries)
{
    char before[64], after[64];
    const char *state;
    PGresult *res;

    PQclear(ask("BEGIN"));
    read_all(before);
    res = ask(row->sql);
    state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    if (strcmp(state != NULL ? state : NOTHING, row->state) != 0)
        fail_msg("%s, not %s: %s: %s", state != NULL ? state : NOTHING, row->state,
                 row->sql, PQerrorMessage(worker));
    if (state == NULL) {
        read_all(after);
        assert_string_equal(after, before);
    }
    PQclear(res);
    PQclear(ask("ROLLBACK"));
}

/* Guarantee: A worker does all of its work through functions of the owner. */
CASE(truth_is_written)
{
    static const char *const steps[] = {
        "SELECT next_token(8) > 8",
        CLAIM(1) "SELECT (1, 0, 0, 0, 0, 1) = (" CHARGE(4, 1) ")",
        CLAIM(1) "SELECT (1, 0, 0, 0, 0, 1) = (" CHARGE(6, 1) ")",
        CLAIM(2) "SELECT (0, 1, 0, 0, 0, 1) = (" CHARGE(7, 2) ")",
        CLAIM(
            1) "SELECT claim_stock(9, '{1}'); SELECT (1, 0, 0, 1) = (SELECT * FROM apply_orders(9, NULL, '{3}', 'w'))",
        "SELECT (SELECT balance_minor FROM users WHERE user_id = 1) = 200",
        "SELECT (SELECT on_hand FROM stock) = 8",
        "SELECT park_subscriptions('{1}', 9, 'w', 'why') = 1",
        "SELECT park_subscriptions('{2}', 9, 'w', 'why') = 2",
        "SELECT park_orders('{4}', 9, 'w', 'why') = 4",
        INCIDENT("lost", "86400000") " IS NOT NULL",
        "SELECT count(*) = 4 FROM lock_incidents",
        "SELECT report_worker('p', 0, 'billing', 'h', 1, '{}') IS NOT NULL",
        "SELECT count(*) = 1 FROM workers",
    };

    struct fixture own; /* a transaction has one batch, so each step is committed */
    char url[FIXTURE_URL];
    PGconn *honest;

    fixture_open_migrated(&own);
    fixture_exec(own.url, forged_rows);
    fixture_url_as(&own, "ledgerlock_worker", url, sizeof url);
    honest = session_open(url);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        PGresult *res = session_ask(honest, steps[i]);

        if (PQntuples(res) != 1 || strcmp(PQgetvalue(res, 0, 0), "t") != 0)
            fail_msg("%s: %d rows", steps[i], PQntuples(res));
        PQclear(res);
    }
    PQfinish(honest);
    fixture_close(&own);
}

/* ---- without a claim ---- */

/* A client writes the rows while an apply that has claimed nothing reads them. */
static const struct {
    const char *name, *sql;
} meanwhile[] = {
    {"deposit", "SELECT deposit(1, 'USD', 50, 'k')"},
    {"cancellation", "SELECT cancel_subscription(1, 4)"},
};

CASE_ROWS(apply_without_a_claim_writes_nothing_beside_a, meanwhile)
{
    PGconn *client = session_open(f.url);

    session_do(client, "SET lock_timeout = '60s'; BEGIN");
    session_do(client, row->sql);
    session_do(worker, "BEGIN");
    session_sticks(worker, CHARGE(4, 1), f.url);
    session_do(client, "COMMIT");
    PQfinish(client);
    session_refused(NOT_ALL, PQgetResult(worker));
    assert_null(PQgetResult(worker));
    session_do(worker, "ROLLBACK");
}

/* ---- beside a client ---- */

/* Guarantee: A subscription that a worker parks while its period is written off stays
 * parked. */
CASE(period_is_not_written_off_while_a_worker_parks_its_subscription)
{
    PGconn *client = session_open(f.url);
    PGresult *res;

    session_do(worker, "BEGIN");
    session_do(worker, "SELECT park_subscriptions('{7}', 9, 'w', 'why')");
    session_do(client, "SET lock_timeout = '60s'; BEGIN");
    session_sticks(client,
                   "SELECT write_off(user_id, 7, next_period_no, 'gone', 'k')"
                   " FROM subscriptions WHERE subscription_id = 7",
                   f.url);
    session_do(worker, "COMMIT");
    res = PQgetResult(client);
    promise_true(PQresultStatus(res) == PGRES_FATAL_ERROR);
    session_refused("LL003", res);
    PQfinish(client);
    fixture_exec(f.url,
                 "SET search_path = ledgerlock; SELECT release_subscriptions('{7}')");
}

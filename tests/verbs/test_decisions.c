/* decisions: the feed of what was decided, read beside those who decide. Its
 * decisions are told in tests/sql/feed.sql. */
#include "tests/lib/client.h"
#include "tests/lib/private_pg.h"
#include "tests/lib/runs.h"
#include "tests/lib/session.h"

static char cursor[64]; /* of the reader; "": none yet */

/* Users 1 and 2 have 10.00, user 3 nothing. */
static void prepare(void)
{
    cursor[0] = '\0';
    client_open();
    world_sku(65, "A", 3, 100);
    for (int user = 1; user <= 3; user++)
        world_user(user, user == 3 ? 0 : 1000);
}

/* A server of its own: a transaction that is open in another database holds up the
 * feed. */
static const struct world_plan world_plan = {.also = prepare};
GROUP(.plan = &world_plan,
      GROUP_OF_WORLD,
      .start = private_pg_begin,
      .stop = private_pg_end);

#define ORDER(user, key, sku)                                                          \
    "SELECT place_order(" user ", '" key "', '[{\"sku\": \"" sku "\", \"qty\": 1}]')"
#define SUBSCRIBE(user, plan)                                                          \
    "SELECT subscribe(" user ", '" plan "', 300, 'USD', 'month', 1, now(), 0, '" plan  \
    "')"

/* Reads a page of decisions, as text, and moves the cursor on. The session is the
 * caller's. */
static const char *read_in(PGconn *reader, int limit)
{
    static char text[4096];
    char sql[512];
    PGresult *res;

    (void)snprintf(
        sql, sizeof sql,
        "SELECT cursor, concat_ws(' ', decision, coalesce(idempotency_key, format('%%s/%%s/%%s',"
        " subscription_id, period_no, try_no))) FROM decisions_since(nullif('%s', ''), %d)",
        cursor, limit);
    res = session_ask(reader, sql);
    text[0] = '\0';
    for (int row = 0; row < PQntuples(res); row++) {
        size_t used = strlen(text);

        (void)snprintf(text + used, sizeof text - used, "%s%s", used > 0 ? ", " : "",
                       PQgetvalue(res, row, 1));
        (void)snprintf(cursor, sizeof cursor, "%s", PQgetvalue(res, row, 0));
    }
    PQclear(res);
    return text;
}

static const char *reads(int limit)
{
    PGconn *reader = session_open(client);
    const char *text = read_in(reader, limit);

    PQfinish(reader);
    return text;
}

/* ---- beside those who decide ---- */

#define SERVE(id, token)                                                               \
    "SELECT claim_users(" token                                                        \
    ", array_agg(user_id)) FROM orders WHERE order_id = " id ";"                       \
    "SELECT claim_stock(" token ", '{65}');"                                           \
    "SELECT * FROM apply_orders(" token ", NULL, '{" id "}', 'w')"
#define CHARGE(token)                                                                  \
    "SELECT claim_users(" token ", '{1}');"                                            \
    "SELECT * FROM apply_charges(" token ", 'w', NULL, '{1}',"                         \
    " (SELECT array_agg(ctid) FROM subscriptions), '{1}', 1000)"

/* A transaction that began first and is open while the reader reads: what it does, and
 * what comes when it ends. */
static const struct {
    const char *name, *before, *sql, *comes;
} early[] = {
    {"cancels_an_order", ORDER("1", "early", "A"), "SELECT cancel_order(1, 1)",
     "order.cancelled early"},
    {"is_refused_an_unknown_sku", "SELECT 1", ORDER("1", "early", "Z"),
     "order.rejected early"},
    {"serves_an_order", ORDER("1", "early", "A"), SERVE("1", "7"),
     "order.fulfilled early"},
    {"charges", SUBSCRIBE("1", "early"), CHARGE("7"), "charge.captured 1/0/1"},
    {"decides_nothing_yet", ORDER("1", "early", "A"), "SELECT pg_current_xact_id()",
     "order.cancelled early"},
};

/* Guarantee: A reader that keeps its cursor is given what a transaction decided that
 * began earlier and is committed later than those which it has read. */
CASE_ROWS(reader_misses_nothing_of_who, early)
{
    PGconn *late = session_open(world.owner), *reader = session_open(client);
    PGconn *first = session_open(world.owner);
    char text[128];

    session_do(late, row->before);
    session_do(first, "BEGIN");
    session_do(first, row->sql);
    session_do(late, ORDER("2", "late", "Z"));
    (void)snprintf(text, sizeof text, "%s", read_in(reader, 9));
    if (strcmp(row->name, "decides_nothing_yet") == 0)
        session_do(first, "SELECT cancel_order(1, 1)");
    session_do(first, "COMMIT");
    (void)snprintf(text + strlen(text), sizeof text - strlen(text), ";%s",
                   read_in(reader, 9));
    promise_true(strstr(text, row->comes) != NULL);
    promise_true(strstr(text, "order.rejected late") != NULL);
    promise_string_equal(read_in(reader, 9), "");
    PQfinish(first);
    PQfinish(late);
    PQfinish(reader);
}

CASE(transaction_that_is_rolled_back_holds_up_the_feed_no_longer)
{
    PGconn *first = session_open(world.owner), *reader = session_open(client);

    session_do(first, "BEGIN;" ORDER("1", "never", "Z"));
    world_do(ORDER("2", "late", "Z"));
    assert_string_equal(read_in(reader, 9), "");
    session_do(first, "ROLLBACK");
    assert_string_equal(read_in(reader, 9), "order.rejected late");
    PQfinish(first);
    PQfinish(reader);
}

static const struct {
    const char *name, *sql;
} levels[] = {{"read_committed", "BEGIN"},
              {"repeatable_read", "BEGIN ISOLATION LEVEL REPEATABLE READ"},
              {"serializable", "BEGIN ISOLATION LEVEL SERIALIZABLE"}};

/* Guarantee: A reader that decides something itself in its transaction, at any
 * isolation level, misses nothing either. */
CASE_ROWS(reader_that_decides_itself_misses_nothing_at, levels)
{
    PGconn *first = session_open(world.owner), *reader = session_open(client);

    session_do(first, "BEGIN;" ORDER("1", "early", "Z"));
    session_do(reader, row->sql);
    session_do(reader, ORDER("2", "own", "Z"));
    session_do(reader, ORDER("2", "own-too", "Z"));
    promise_string_equal(read_in(reader, 9), "");
    session_do(first, "COMMIT");
    session_do(reader, "COMMIT");
    promise_string_equal(
        read_in(reader, 9),
        "order.rejected early, order.rejected own, order.rejected own-too");
    PQfinish(first);
    PQfinish(reader);
}

CASE(cursor_of_a_time_stands_before_what_is_open)
{
    PGconn *first = session_open(world.owner);

    session_do(first, "BEGIN;" ORDER("1", "open", "Z"));
    world_do(ORDER("1", "before", "Z"));
    (void)snprintf(cursor, sizeof cursor, "%s", world_text("SELECT decisions_from()"));
    world_do(ORDER("1", "behind", "Z"));
    session_do(first, "COMMIT");
    assert_string_equal(
        reads(9), "order.rejected open, order.rejected before, order.rejected behind");
    PQfinish(first);
}

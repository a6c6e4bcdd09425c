/* audit: rows changed one by one behind the program's back, in a world that the program
 * itself has worked. Each is found by the audit of a database that has lost its
 * constraints and triggers, or refused by one that has them, or says why it is not. */
#include "audit_gen.h"
#include "tests/lib/audit_tampers.h"
#include "tests/lib/runs.h"
#include "tests/lib/session.h"

#define WORLD_NOW "2024-05-30T00:00:00Z"

enum { FIRST = sizeof tampers / sizeof tampers[0], FOUND_AT_LEAST = 78 };

static struct fixture f, loose;
static PGconn *strict_conn, *loose_conn;

/* ---- the world ---- */

/* No seed makes these: a deposit and a delivery by hand, a user with a deposit alone, a
 * withdrawal, terms that change in a paid period, an order of an unknown SKU, one that
 * is pending, a SKU that nobody orders, an account that is closed, a job that
 * was paused, a key of a subscription, an incident. */
static const char by_hand[] =
    "SET search_path = ledgerlock;"
    "INSERT INTO wallet_entries (user_id, kind, idempotency_key, amount_minor, at) VALUES (1, 'deposit', 'by hand', 500, '2024-04-10Z');"
    "UPDATE users SET balance_minor = balance_minor + 500 WHERE user_id = 1;"
    "INSERT INTO stock_entries (sku_id, kind, idempotency_key, qty, at) VALUES (1, 'delivery', '1', 10, '2024-04-10Z');"
    "UPDATE stock SET on_hand = on_hand + 10 WHERE sku_id = 1;"
    "SELECT deposit(create_user(name, 'USD'), 'USD', 900, 'k', '2024-04-10 12:00Z') FROM (VALUES ('saver'), ('payer')) AS u (name);"
    "SELECT withdraw(user_id, 'USD', 300, 'asked for', 'w', '2024-04-10 12:00Z') FROM users WHERE external_ref = 'payer';"
    "SELECT place_order(1, 'unknown', '[{\"sku\": \"NOPE\", \"qty\": 1}]'),"
    "       place_order(1, 'later', '[{\"sku\": \"SKU-00001\", \"qty\": 1}]');"
    "INSERT INTO stock (sku, initial_qty, on_hand, unit_price_minor, currency) VALUES ('LONE', 1, 1, 1, 'USD');"
    "SELECT cancel_order(1, place_order(1, 'taken back', '[{\"sku\": \"SKU-00001\", \"qty\": 1}]')), adjust_stock('LONE', -1, 'lost', 'a', '2024-04-10 12:00Z');"
    "SELECT refund(user_id, 'charge', subscription_id, period_no, 1, 'late', 'r', '2024-04-10 12:00Z') FROM (SELECT * FROM charges"
    " WHERE state = 'captured' AND amount_minor > 1 ORDER BY subscription_id, period_no LIMIT 1) AS c;"
    "SELECT return_units(user_id, order_id, sku, 1, 'broken', 'b', '2024-04-10 12:00Z') FROM (SELECT * FROM orders JOIN order_lines"
    " USING (order_id) JOIN stock USING (sku_id) WHERE state = 'fulfilled' ORDER BY order_id, sku_id LIMIT 1) AS o;"
    "SELECT write_off(user_id, subscription_id, next_period_no, 'gone', 'w', '2024-04-10 12:00Z') FROM (SELECT * FROM subscriptions"
    " WHERE state = 'past_due' ORDER BY subscription_id LIMIT 1) AS s;"
    "SELECT change_now(user_id, subscription_id, plan, 2, amount_minor, 'c', '2024-04-10 12:00Z') FROM (SELECT * FROM subscriptions JOIN charges"
    " USING (subscription_id, user_id, amount_minor) WHERE subscriptions.state = 'active' AND charges.state = 'captured' AND amount_minor > 1 AND period_no = next_period_no - 1"
    " AND '2024-04-10 12:00Z' BETWEEN period_start AND period_end - interval '5 days' ORDER BY subscription_id LIMIT 1) AS s;"
    "SELECT close_account(create_user('gone', 'USD')), pause_job('orders', 'r'), resume_job('orders');"
    "INSERT INTO events (event, subscription_id, user_id, idempotency_key, state, next_period_no, retries, next_due_at, cancel_at)"
    " SELECT 'subscribed', subscription_id, user_id, 'by hand', state, next_period_no, retries, next_due_at, cancel_at"
    " FROM subscriptions WHERE subscription_id = 1;"
    "INSERT INTO lock_incidents (resource, token, worker, kind, phase) VALUES ('lock:user:1', 7, 'w', 'lost', 'apply')";

/* As cancel_subscription does, at another time: so many periods from now. */
static void cancel(int periods, const char *which)
{
    char sql[800];

    (void)snprintf(
        sql, sizeof sql,
        "SET search_path = ledgerlock; WITH given AS (UPDATE subscriptions SET"
        " cancel_at = period_start(anchor_at, unit, every, next_period_no + %d) WHERE"
        " subscription_id IN (SELECT subscription_id FROM subscriptions WHERE cancel_at IS NULL AND %s) RETURNING *)"
        " INSERT INTO events (subscription_id, event, state, next_period_no, retries, next_due_at,"
        " cancel_at, user_id) SELECT subscription_id, 'cancel_set', state, next_period_no, retries, next_due_at,"
        " cancel_at, user_id FROM given",
        periods, which);
    fixture_exec(f.url, sql);
}

static void work_the_world(void)
{
    static const char *const days[] = {"2024-04-12", "2024-04-16", "2024-04-22",
                                       "2024-04-30"};

    runs(&f, 0,
         "seed --users 300 --subscriptions 900 --skus 60 --orders 600 --seed 7 --now "
         "2024-04-10T00:00:00Z");
    runs(&f, 0, "run -w 2 --once --now 2024-04-10T00:00:00Z");
    fixture_exec(f.url, by_hand);
    for (size_t i = 0; i < sizeof days / sizeof days[0]; i++)
        runs(&f, 0, "run -w 1 --once --jobs billing --now %sT00:00:00Z", days[i]);
    cancel(2, "state = 'active' AND unit = 'month' AND subscription_id % 9 = 0");
    cancel(0, "state = 'past_due' AND subscription_id IN (SELECT "
              "subscription_id FROM subscriptions WHERE state = 'past_due' "
              "ORDER BY 1 LIMIT 5)");
    runs(&f, 0, "run -w 1 --once --jobs billing --now " WORLD_NOW);
    runs(&f, 0, "audit --lag 90d --now " WORLD_NOW);
}

/* In a transaction that is undone: changes one row, and names what finds it. */
static const char tamper_function[] =
    "SET search_path = ledgerlock; SET ledgerlock.now = '" WORLD_NOW
    "'; SET ledgerlock.lag = '90 days';"
    "CREATE TEMP TABLE invariant (name text, query text);"
    "CREATE FUNCTION pg_temp.tamper(p_sql text, p_name text) RETURNS text LANGUAGE plpgsql AS $$"
    " DECLARE i record; n bigint; found text := ''; BEGIN"
    "  EXECUTE p_sql; GET DIAGNOSTICS n = ROW_COUNT;"
    "  IF n <> 1 THEN RETURN 'it changed ' || n || ' rows'; END IF;"
    "  BEGIN"
    "   FOR i IN SELECT * FROM invariant WHERE p_name IS NULL OR name = p_name LOOP"
    "    EXECUTE 'SELECT count(*) FROM (' || i.query || E'\\n) AS v' INTO n;"
    "    IF n > 0 THEN found := found || i.name || ' '; END IF;"
    "   END LOOP;"
    "  END;"
    "  RETURN found; END $$";

static void put_invariants(void)
{
    session_do(loose_conn, tamper_function);
    for (size_t i = 0; i < AUDIT_COUNT; i++) {
        const char *text = (const char *)audit_texts[i].text;
        char *query = strdup(text);
        const char *values[] = {audit_texts[i].stem, query};

        if (i == AUDIT_SCHEMA_AS_BUILT) { /* without guards it is not */
            free(query);
            continue;
        }
        assert_non_null(query);
        *strrchr(query, ';') = '\0';
        PQclear(PQexecParams(loose_conn, "INSERT INTO invariant VALUES ($1, $2)", 2,
                             NULL, values, NULL, NULL, 0));
        free(query);
    }
}

static void open_worlds(void)
{
    fixture_open_migrated(&f);
    work_the_world();
    fixture_copy(&loose, &f, "");
    fixture_unguard(&loose);
    strict_conn = session_open(f.url);
    loose_conn = PQconnectdb(loose.url);
    put_invariants();
}

static void close_worlds(void)
{
    PQfinish(strict_conn);
    PQfinish(loose_conn);
    fixture_close(&loose);
    fixture_close(&f);
}

GROUP(.start = open_worlds, .stop = close_worlds);

/* ---- one tamper ---- */

/* The names of those that find it; invariant NULL: of all. Overwritten by the next
 * call. */
static const char *finds(const struct tamper *t, const char *invariant)
{
    static char found[4000];
    const char *values[] = {t->sql, invariant};
    PGresult *res;

    session_do(loose_conn, "BEGIN");
    res = PQexecParams(loose_conn, "SELECT pg_temp.tamper($1, $2)", 2, NULL, values,
                       NULL, NULL, 0);
    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", t->name, PQresultErrorMessage(res));
    (void)snprintf(found, sizeof found, "%s", session_text(res, 0, 0));
    PQclear(res);
    session_do(loose_conn, "ROLLBACK");
    return found;
}

/* Integrity violations are of class 23. */
static bool is_refused(const struct tamper *t)
{
    PGresult *res;
    const char *state;
    bool refused;

    session_do(strict_conn, "BEGIN");
    res = PQexec(strict_conn, t->sql);
    state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    refused = state != NULL && strncmp(state, "23", 2) == 0;
    PQclear(res);
    session_do(strict_conn, "ROLLBACK");
    return refused;
}

/* Prints what is wrong, so that one run tells of all. */
static bool is_as_told(const struct tamper *t)
{
    bool is_unseen = strncmp(t->how, "unseen: ", 8) == 0;
    bool by_schema = strcmp(t->how, "refused") == 0;
    const char *found = finds(t, is_unseen || by_schema ? NULL : t->how);
    bool told = is_unseen   ? found[0] == '\0' && !is_refused(t)
                : by_schema ? is_refused(t) && found[0] == '\0'
                            : strncmp(found, t->how, strlen(t->how)) == 0;

    if (!told) {
        char all[1000];

        (void)snprintf(all, sizeof all, "%s", found);
        print_message("%s: not \"%s\"; found by \"%s\", of all \"%s\"%s\n", t->name,
                      t->how, all, finds(t, NULL), is_refused(t) ? ", refused" : "");
    }
    return told;
}

/* Guarantee: A row that is changed behind the program's back is found by the audit or
 * refused by the schema. */
CASE(tampers_are_found_or_refused)
{
    int seen = 0, wrong = 0;

    for (size_t i = 0; i < FIRST; i++) {
        wrong += !is_as_told(&tampers[i]);
        seen += strncmp(tampers[i].how, "unseen: ", 8) != 0;
    }
    assert_int_equal(FIRST, 83 + 1); /* the outsider had no table audits */
    assert_true(seen >= FOUND_AT_LEAST);
    assert_int_equal(wrong, 0);
}

CASE(tampers_of_other_columns_are_found_or_refused)
{
    size_t n = sizeof tampers_by_column / sizeof tampers_by_column[0];
    int wrong = 0;

    for (size_t i = 0; i < n; i++) {
        wrong += !is_as_told(&tampers_by_column[i]);
        assert_true(strncmp(tampers_by_column[i].how, "unseen: ", 8) != 0);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(tampers_by_column[i].name,
                                    tampers_by_column[k].name);
    }
    assert_true(n >= 30);
    assert_int_equal(wrong, 0);
}

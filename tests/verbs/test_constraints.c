/* constraints: each constraint, unique index and trigger of the schema refuses a row,
 * and so does each column that must have a value. A guard that nothing here breaks
 * fails the test, and so does a statement that nothing refuses. */
#include "tests/lib/fixture.h"
#include "tests/lib/refused_rows.h"
#include "tests/lib/session.h"

enum { GUARDS_MAX = 300 };

/* Of the partitions those of one month, which is closed, beside what they have from
 * their table. */
static const char guards_sql[] =
    "SELECT coalesce(r.relname, t.typname) || '.' || conname FROM pg_constraint AS c"
    " LEFT JOIN pg_class AS r ON r.oid = conrelid LEFT JOIN pg_type AS t ON t.oid = contypid"
    " WHERE connamespace = 'ledgerlock'::regnamespace AND contype IN ('c', 'p', 'u', 'x', 'f') AND coninhcount = 0"
    " UNION ALL SELECT r.relname || '.' || x.relname FROM pg_index JOIN pg_class AS x ON x.oid = indexrelid"
    " JOIN pg_class AS r ON r.oid = indrelid WHERE x.relnamespace = 'ledgerlock'::regnamespace AND indisunique AND NOT x.relispartition"
    " AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)"
    " UNION ALL SELECT r.relname || '.' || tgname || '()' FROM pg_trigger JOIN pg_class AS r ON r.oid = tgrelid"
    " WHERE NOT tgisinternal AND tgparentid = 0 AND (NOT r.relispartition OR r.relname LIKE '%2023_12')"
    " AND r.relnamespace = 'ledgerlock'::regnamespace ORDER BY 1";

/* A statement, and the row that its trigger writes. */
static const struct {
    const char *name, *sql, *row;
} fillings[] = {
    {"keep_contracts",
     "INSERT INTO subscriptions (subscription_id, user_id, plan, amount_minor, currency,"
     " anchor_at, unit, next_due_at) VALUES (9, 1, 'new', 100, 'USD', '2024-01-31Z',"
     " 'month', '2024-01-31Z')",
     "SELECT count(*) FROM contracts WHERE subscription_id = 9 AND plan = 'new'"},
    {"journal_decided_order",
     "INSERT INTO orders (order_id, user_id, idempotency_key, request_hash, state,"
     " reason, skus, total_minor, currency, placed_at, decided_at) VALUES (9, 1, 'k9',"
     " '', 'rejected', 'unknown_sku', '{X}', 0, 'USD', now(), now())",
     "SELECT count(*) FROM order_journal WHERE order_id = 9 AND event = 'made'"},
    {"journal_stock", "UPDATE stock SET unit_price_minor = 251 WHERE sku_id = 1",
     "SELECT count(*) FROM stock_journal WHERE sku_id = 1 AND unit_price_minor = 251"},
};

static struct fixture f;
static PGconn *conn;

static void open_world(void)
{
    fixture_open_migrated(&f);
    fixture_exec(f.url, world);
    conn = PQconnectdb(f.url);
    PQclear(PQexec(conn, "SET search_path = ledgerlock, pg_catalog;"
                         "SET ledgerlock.repair = on"));
}

static void close_world(void)
{
    PQfinish(conn);
    fixture_close(&f);
}

GROUP(.start = open_world, .stop = close_world);

/* The answer to one statement behind others; all are rolled back. */
static PGresult *attempt(const char *before, const char *sql)
{
    PGresult *res;

    PQclear(PQexec(conn, "BEGIN; SET CONSTRAINTS ALL IMMEDIATE"));
    PQclear(PQexec(conn, before));
    res = PQexec(conn, sql);
    PQclear(PQexec(conn, "ROLLBACK"));
    return res;
}

/* Names the guard that refused: "table.constraint", "domain.constraint" or
 * "table.trigger()". */
static void name_guard(const struct refusal *r, PGresult *res, char *name, size_t size)
{
    static const char refused[] = "is refused: ", by[] = "PL/pgSQL function ";
    const char *guard = PQresultErrorField(res, PG_DIAG_CONSTRAINT_NAME);
    const char *context = PQresultErrorField(res, PG_DIAG_CONTEXT);
    const char *message = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
    const char *suffix = guard == NULL ? "()" : "";
    int length;

    if (guard != NULL) {
        length = (int)strcspn(guard, "0123456789"); /* of a month: _2026_11 */
        length -= guard[length] != '\0';
    } else if ((guard = strstr(message, refused)) != NULL) {
        guard += sizeof refused - 1;
        length = (int)strlen(guard);
    } else if (context != NULL && (guard = strstr(context, by)) != NULL) {
        guard += sizeof by - 1; /* a trigger that is called as its function is */
        guard += strncmp(guard, "ledgerlock.", 11) == 0 ? 11 : 0;
        length = (int)strcspn(guard, "(");
    } else {
        fail_msg("%s: no constraint and no trigger refused it: %s", r->sql, message);
        return;
    }
    (void)snprintf(name, size, "%s.%.*s%s", r->table, length, guard, suffix);
    for (; *name != '\0'; name++)
        *name = *name == ' ' ? '_' : *name;
}

static int find_guard(const PGresult *guards, const char *name)
{
    int at = 0;

    while (at < PQntuples(guards) && strcmp(PQgetvalue(guards, at, 0), name) != 0)
        at++;
    return at;
}

/* A trigger that refuses nothing has a statement among the fillings. */
static bool is_filling(const char *guard)
{
    const char *name = strchr(guard, '.') + 1;
    size_t length = strcspn(name, "("), i = 0, n = sizeof fillings / sizeof fillings[0];

    while (i < n && (strlen(fillings[i].name) != length ||
                     strncmp(fillings[i].name, name, length) != 0))
        i++;
    return i < n;
}

/* Guarantee: Each constraint, unique index and trigger of the schema refuses a row
 * that breaks it; none is without such a row. */
CASE(each_constraint_and_trigger_refuses_a_row)
{
    PGresult *guards = attempt(CLOSE_MONTH, guards_sql);
    bool is_broken[GUARDS_MAX] = {false};
    int n = PQntuples(guards);

    assert_in_range(n, 200, GUARDS_MAX);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        PGresult *res = attempt("", refusals[i].sql);
        char name[256];
        int at;

        if (PQresultStatus(res) != PGRES_FATAL_ERROR)
            fail_msg("nothing refuses: %s", refusals[i].sql);
        name_guard(&refusals[i], res, name, sizeof name);
        at = find_guard(guards, name);
        if (at == n)
            fail_msg("%s: refused by %s, which the catalogue does not have",
                     refusals[i].sql, name);
        if (is_broken[at])
            fail_msg("%s: refused by %s, as another statement is", refusals[i].sql,
                     name);
        is_broken[at] = true;
        PQclear(res);
    }
    for (int i = 0; i < n; i++)
        if (!is_broken[i] && !is_filling(PQgetvalue(guards, i, 0)))
            fail_msg("no statement here breaks %s", PQgetvalue(guards, i, 0));
    PQclear(guards);
}

/* Guarantee: Nothing that a row names can be deleted: each foreign key refuses it. */
CASE(each_foreign_key_keeps_what_it_names)
{
    PGresult *keys = PQexec(
        conn, "SELECT concat((SELECT string_agg(format('ALTER TABLE %s DROP CONSTRAINT "
              "%I; ', o.conrelid::regclass, o.conname), '') FROM pg_constraint AS o "
              "WHERE o.confrelid = c.confrelid AND o.oid <> c.oid), 'DELETE FROM ', "
              "confrelid::regclass), conname FROM pg_constraint AS c WHERE "
              "connamespace = 'ledgerlock'::regnamespace AND contype = 'f'");

    assert_true(PQntuples(keys) > 10);
    for (int i = 0; i < PQntuples(keys); i++) {
        PGresult *res = attempt("", PQgetvalue(keys, i, 0));
        const char *name = PQresultErrorField(res, PG_DIAG_CONSTRAINT_NAME);

        if (name == NULL || strcmp(name, PQgetvalue(keys, i, 1)) != 0 ||
            strcmp(PQresultErrorField(res, PG_DIAG_SQLSTATE), "23503") != 0)
            fail_msg("%s: %s", PQgetvalue(keys, i, 0), PQresultErrorMessage(res));
        PQclear(res);
    }
    PQclear(keys);
}

/* Guarantee: Each column that needs a value refuses NULL. */
CASE(each_column_that_needs_a_value_refuses_none)
{
    PGresult *columns = PQexec(
        conn,
        "SELECT format('UPDATE %s SET %I = NULL', c.oid::regclass, attname), attname FROM pg_attribute AS a "
        "JOIN pg_class AS c ON c.oid = attrelid WHERE c.relnamespace = 'ledgerlock'::regnamespace "
        "AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND attnum > 0 AND NOT attisdropped AND attnotnull "
        "AND attidentity <> 'a' AND attgenerated = ''");

    assert_true(PQntuples(columns) > 50);
    for (int i = 0; i < PQntuples(columns); i++) {
        const char *sql = PQgetvalue(columns, i, 0);
        PGresult *res = attempt("", sql);
        const char *sqlstate = PQresultErrorField(res, PG_DIAG_SQLSTATE);
        const char *column = PQresultErrorField(res, PG_DIAG_COLUMN_NAME);

        if (strstr(PQresultErrorMessage(res), "no partition of relation") != NULL) {
            PQclear(res); /* NULL names no month */
            continue;
        }
        if (sqlstate == NULL || strcmp(sqlstate, "23502") != 0 ||
            strcmp(column, PQgetvalue(columns, i, 1)) != 0)
            fail_msg("%s: %s", sql, PQresultErrorMessage(res));
        PQclear(res);
    }
    PQclear(columns);
}

/* Guarantee: Each trigger of the schema that refuses nothing writes its row of a
 * journal or of the contracts. */
CASE_ROWS(trigger_fills_its_table, fillings)
{
    PGresult *res;

    PQclear(PQexec(conn, "BEGIN"));
    session_do(conn, row->sql);
    res = session_ask(conn, row->row);
    assert_string_equal(session_text(res, 0, 0), "1");
    PQclear(res);
    PQclear(PQexec(conn, "ROLLBACK"));
}

static const struct {
    const char *name, *pauses;
} schedules[] = {
    {"no_pause", "{}"},
    {"a_pause_of_nothing", "{0}"},
    {"a_pause_of_null", "{86400,NULL}"},
    {"a_pause_above_a_year", "{86400,31622401}"},
    {"seventeen_pauses", "{1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}"},
};

CASE_ROWS(retry_schedule_is_refused_with, schedules)
{
    char sql[128];
    PGresult *res;

    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO retry_schedules (pauses_s) VALUES ('%s')", row->pauses);
    res = attempt("", sql);
    assert_string_equal(PQresultErrorField(res, PG_DIAG_CONSTRAINT_NAME),
                        "retries_within_a_year");
    PQclear(res);
}

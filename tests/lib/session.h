/* session: statements in a session that a test keeps; one that fails ends the test. */
#ifndef LL_TEST_SESSION_H
#define LL_TEST_SESSION_H

#include <libpq-fe.h>

#include "tests/lib/fixture.h"

/* With search_path ledgerlock. */
static inline PGconn *session_open(const char *url)
{
    PGconn *conn = PQconnectdb(url);

    if (PQstatus(conn) != CONNECTION_OK)
        fail_msg("%s: %s", url, PQerrorMessage(conn));
    PQclear(PQexec(conn, "SET search_path = ledgerlock"));
    return conn;
}

/* The result is the caller's. */
static inline PGresult *session_ask(PGconn *conn, const char *sql)
{
    PGresult *res = PQexec(conn, sql);

    if (PQresultStatus(res) != PGRES_COMMAND_OK &&
        PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(conn));
    return res;
}

static inline void session_do(PGconn *conn, const char *sql)
{
    PQclear(session_ask(conn, sql));
}

/* Asserts that the result is an error with this SQLSTATE, and clears it. */
static inline void session_refused(const char *state, PGresult *res)
{
    const char *is = PQresultErrorField(res, PG_DIAG_SQLSTATE);

    if (PQresultStatus(res) != PGRES_FATAL_ERROR || is == NULL ||
        strcmp(is, state) != 0)
        fail_msg("%s, not %s: %s", is != NULL ? is : "no error", state,
                 PQresultErrorMessage(res));
    PQclear(res);
}

/* True if the statement that was sent has its answer. */
static inline bool session_is_answered(PGconn *conn)
{
    assert_int_equal(PQconsumeInput(conn), 1);
    return !PQisBusy(conn);
}

/* Sends the statement, and returns while another session keeps it waiting. `url`: of
 * anybody in the database. */
static inline void session_sticks(PGconn *conn, const char *sql, const char *url)
{
    char waits[160];

    assert_int_equal(PQsendQuery(conn, sql), 1);
    (void)snprintf(waits, sizeof waits, "SELECT cardinality(pg_blocking_pids(%d))",
                   PQbackendPID(conn));
    FIXTURE_AWAIT(fixture_query_int8(url, waits) > 0 || session_is_answered(conn),
                  "nothing waits: %s", sql);
    if (session_is_answered(conn))
        fail_msg("it waits for nobody: %s", sql);
}

/* The field of a result, which must have it. */
static inline const char *session_text(const PGresult *res, int row, int column)
{
    if (row >= PQntuples(res) || column >= PQnfields(res))
        fail_msg("no field %d of row %d in %d rows %s", column, row, PQntuples(res),
                 PQresultErrorMessage(res));
    return PQgetvalue(res, row, column);
}

static inline int64_t session_number(const PGresult *res, int row, int column)
{
    return strtoll(session_text(res, row, column), NULL, 10);
}

#endif

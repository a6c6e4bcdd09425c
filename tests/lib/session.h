/* session: statements in a session that a test keeps; one that fails ends the test. */
#ifndef LEDGERLOCK_SESSION_H
#define LEDGERLOCK_SESSION_H

#include <libpq-fe.h>

#include "tests/lib/test.h"

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

static inline int64_t session_number(const PGresult *res, int row, int column)
{
    return strtoll(PQgetvalue(res, row, column), NULL, 10);
}

#endif

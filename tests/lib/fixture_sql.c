/* fixture_sql: statements beside the program, by libpq. */
#include <poll.h>

#include "tests/lib/fixture.h"
#include "tests/lib/session.h"

/* The session of the last question, clean and kept for the next one: tests ask in
 * loops, and a session of its own for each would take more of the machine than what
 * they look at. */
static struct {
    PGconn *conn;
    pid_t pid; /* a child of a test has sessions of its own */
    char url[FIXTURE_URL];
} kept;

static PGconn *connect_to(const char *url)
{
    PGconn *conn = PQconnectdb(url);

    if (PQstatus(conn) != CONNECTION_OK)
        fail_msg("%s: %s", url, PQerrorMessage(conn));
    return conn;
}

static void end_kept(void)
{
    if (kept.conn != NULL && kept.pid == getpid())
        PQfinish(kept.conn);
    kept.conn = NULL;
}

/* A server that is gone, or has ended the session, has closed the socket. */
static bool is_kept(const char *url)
{
    struct pollfd fd = {.fd = PQsocket(kept.conn), .events = POLLIN};

    return kept.conn != NULL && kept.pid == getpid() && strcmp(kept.url, url) == 0 &&
           PQstatus(kept.conn) == CONNECTION_OK && poll(&fd, 1, 0) == 0;
}

static PGconn *session_for(const char *url)
{
    if (is_kept(url))
        return kept.conn;
    end_kept();
    kept.conn = connect_to(url);
    kept.pid = getpid();
    (void)snprintf(kept.url, sizeof kept.url, "%s", url);
    return kept.conn;
}

/* As if it were a new one: no setting, no lock. */
static void clean(PGconn *conn)
{
    PGresult *res = PQexec(conn, "DISCARD ALL");

    if (PQresultStatus(res) != PGRES_COMMAND_OK)
        end_kept();
    PQclear(res);
}

static void ignore_notice(void *arg, const PGresult *res)
{
    (void)arg;
    (void)res;
}

const char *fixture_sqlstate(const char *url, const char *sql, char state[6])
{
    PGconn *conn = connect_to(url);
    const char *code;
    PGresult *res;

    (void)PQsetNoticeReceiver(conn, ignore_notice, NULL);
    res = PQexec(conn, sql);
    code = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    (void)snprintf(state, 6, "%s", code != NULL ? code : "00000");
    PQclear(res);
    PQfinish(conn);
    return state;
}

/* The statement may change how sessions begin: so the next question gets a new one.
 * Tests plant what the triggers of the schema refuse: as an owner who repairs by hand.
 */
void fixture_exec(const char *url, const char *sql)
{
    PGconn *conn = connect_to(url);

    end_kept();
    (void)PQsetNoticeReceiver(conn, ignore_notice, NULL);
    PQclear(PQexec(conn, "SET ledgerlock.repair = on"));
    session_do(conn, sql);
    PQfinish(conn);
}

void fixture_query_text(const char *url, const char *sql, char *buf, size_t size)
{
    PGconn *conn = session_for(url);
    PGresult *res = session_ask(conn, sql);

    if (PQntuples(res) == 0)
        fail_msg("%s: no row", sql);
    (void)snprintf(buf, size, "%s", PQgetvalue(res, 0, 0));
    PQclear(res);
    clean(conn);
}

int64_t fixture_query_int8(const char *url, const char *sql)
{
    char text[64];

    fixture_query_text(url, sql, text, sizeof text);
    return strcmp(text, "t") == 0 ? 1 : strtoll(text, NULL, 10);
}

/* fixture_sql: statements beside the program, by libpq. */
#include <poll.h>

#include "tests/lib/fixture.h"
#include "tests/lib/session.h"

/* The sessions of the last statements, clean and kept for the next ones: a session of
 * its own for each would take more of the machine than what tests look at. */
enum { SESSIONS = 3 };

static struct kept {
    PGconn *conn;
    pid_t pid; /* a child of a test has sessions of its own */
    char url[FIXTURE_URL];
} sessions[SESSIONS];

static PGconn *connect_to(const char *url)
{
    PGconn *conn = PQconnectdb(url);

    if (PQstatus(conn) != CONNECTION_OK)
        fail_msg("%s: %s", url, PQerrorMessage(conn));
    return conn;
}

static void end(struct kept *k)
{
    if (k->conn != NULL && k->pid == getpid())
        PQfinish(k->conn);
    k->conn = NULL;
}

static void end_all(void)
{
    for (size_t i = 0; i < SESSIONS; i++)
        end(&sessions[i]);
}

/* A server that is gone, or has ended the session, has closed the socket. */
static bool is_kept(const struct kept *k, const char *url)
{
    struct pollfd fd = {.fd = PQsocket(k->conn), .events = POLLIN};

    return k->conn != NULL && k->pid == getpid() && strcmp(k->url, url) == 0 &&
           PQstatus(k->conn) == CONNECTION_OK && poll(&fd, 1, 0) == 0;
}

/* The caller's until give_back: a case that fails meanwhile leaves it to nobody. */
static PGconn *take(const char *url)
{
    for (size_t i = 0; i < SESSIONS; i++) {
        PGconn *conn = sessions[i].conn;

        if (is_kept(&sessions[i], url)) {
            sessions[i].conn = NULL;
            return conn;
        }
    }
    return connect_to(url);
}

/* As if it were a new one: no setting, no lock. The oldest makes room. */
static void give_back(PGconn *conn, const char *url)
{
    PGresult *res = PQexec(conn, "DISCARD ALL");
    bool is_clean = PQresultStatus(res) == PGRES_COMMAND_OK;

    PQclear(res);
    if (!is_clean) {
        PQfinish(conn);
        return;
    }
    end(&sessions[SESSIONS - 1]);
    memmove(sessions + 1, sessions, (SESSIONS - 1) * sizeof sessions[0]);
    sessions[0] = (struct kept){.conn = conn, .pid = getpid()};
    (void)snprintf(sessions[0].url, sizeof sessions[0].url, "%s", url);
}

/* A statement that changes how sessions begin, or wants a database without any. */
static bool is_about_sessions(const char *sql)
{
    static const char *const words[] = {"DATABASE", "ROLE", "SYSTEM", "reload_conf",
                                        "terminate"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(sql, words[i]) != NULL)
            return true;
    return false;
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

/* Tests plant what the triggers of the schema refuse: as an owner who repairs by hand.
 */
void fixture_exec(const char *url, const char *sql)
{
    PGconn *conn;

    if (is_about_sessions(sql))
        end_all();
    conn = take(url);
    (void)PQsetNoticeReceiver(conn, ignore_notice, NULL);
    PQclear(PQexec(conn, "SET ledgerlock.repair = on"));
    session_do(conn, sql);
    give_back(conn, url);
    if (is_about_sessions(sql))
        end_all();
}

void fixture_query_text(const char *url, const char *sql, char *buf, size_t size)
{
    PGconn *conn = take(url);
    PGresult *res = session_ask(conn, sql);

    if (PQntuples(res) == 0)
        fail_msg("%s: no row", sql);
    (void)snprintf(buf, size, "%s", PQgetvalue(res, 0, 0));
    PQclear(res);
    give_back(conn, url);
}

int64_t fixture_query_int8(const char *url, const char *sql)
{
    char text[64];

    fixture_query_text(url, sql, text, sizeof text);
    return strcmp(text, "t") == 0 ? 1 : strtoll(text, NULL, 10);
}

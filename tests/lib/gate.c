/* gate: row locks behind savepoints: going back to one gives back what came after it.
 */
#include "tests/lib/gate.h"

#include "tests/lib/session.h"
#include "tests/lib/world.h"

static PGconn *session;
static int portions, held;
static char who[1 << 13]; /* for another session */

/* False: the server has ended the session, and with it what it held. */
__attribute__((format(printf, 1, 2))) static bool run(const char *format, ...)
{
    static char sql[1 << 14];
    PGresult *res;
    va_list ap;
    bool done;
    int n;

    va_start(ap, format);
    n = vsnprintf(sql, sizeof sql, format, ap);
    va_end(ap);
    assert_in_range(n, 1, sizeof sql - 1);
    res = PQexec(session, sql);
    done = PQresultStatus(res) == PGRES_COMMAND_OK ||
           PQresultStatus(res) == PGRES_TUPLES_OK;
    if (!done && PQstatus(session) == CONNECTION_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(session));
    PQclear(res);
    return done;
}

static bool lock(void)
{
    session = PQconnectdb(world.owner);
    if (PQstatus(session) != CONNECTION_OK)
        return false;
    if (!run("BEGIN"))
        return false;
    for (held = 0; held < portions; held++) {
        if (!run("SAVEPOINT portion_%d", held) ||
            !run(
                "SELECT FROM ledgerlock.users WHERE user_id IN (SELECT user_id FROM (SELECT"
                " user_id, row_number() OVER (ORDER BY user_id) %% %d AS portion FROM"
                " ledgerlock.users WHERE %s) AS u WHERE portion = %d) ORDER BY user_id FOR"
                " NO KEY UPDATE SKIP LOCKED",
                portions, who, held))
            return false;
    }
    return true;
}

void gate_shut(const char *users, int n)
{
    gate_open();
    assert_in_range(snprintf(who, sizeof who, "%s", users), 1, sizeof who - 1);
    portions = n;
    if (!lock())
        fail_msg("%s", PQerrorMessage(session));
}

void gate_feed(void)
{
    if (held > 1 && gate_holds()) {
        (void)run("ROLLBACK TO SAVEPOINT portion_%d", --held);
    } else if (session != NULL && !gate_holds()) {
        PQfinish(session);
        (void)lock();
    }
}

void gate_open(void)
{
    PQfinish(session);
    session = NULL;
    held = 0;
}

bool gate_is_shut(void)
{
    return session != NULL;
}

bool gate_holds(void)
{
    PGresult *res;
    bool holds;

    if (session == NULL)
        return false;
    res = PQexec(session, "SELECT");
    holds = PQresultStatus(res) == PGRES_TUPLES_OK;
    PQclear(res);
    return holds;
}

/* pg_session: settings of a session or of each of its transactions; detection of
 * connection poolers; the way to the node that has the tables. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/pg/pg_private.h"

enum { PROBES = 5, PROBE_MS = 1000, PG_HOST = 256, PG_PORT = 24 };

static const char unknown_pooler[] =
    "a pooler in transaction mode stands before PostgreSQL, so sessions do not last: "
    "set postgres.pooling to transaction (--pooling transaction), or name PostgreSQL "
    "itself in postgres.url";

/* ---- settings ---- */

/* The prints of PostgreSQL depend on these, and so do definitions that it prints of
 * objects, texts that are cast, and how a text of ours is read: a database or a role
 * may have others. First of all, since the quotes within search_path are printed, too.
 */
static size_t write_prints(const char *set, char text[PG_SETTINGS])
{
    static const char *const prints[] = {
        "quote_all_identifiers TO off",
        "standard_conforming_strings TO on",
        "transform_null_equals TO off",
        "array_nulls TO on",
        "DateStyle TO 'ISO, MDY'",
        "IntervalStyle TO postgres",
        "timezone TO 'UTC'",
        "extra_float_digits TO 1",
        "bytea_output TO hex",
    };

    size_t n = 0;

    for (size_t i = 0; i < sizeof prints / sizeof prints[0]; i++)
        n += (size_t)snprintf(text + n, PG_SETTINGS - n, "%s %s; ", set, prints[i]);
    return n;
}

enum { WITH_TRANSACTION_TIMEOUT = 170000 }; /* version of the server */

/* Every limit is written, 0 as well: those of the database or of the role are meant for
 * others, and end none of our statements. Behind a transaction pooler the sessions that
 * are idle are the pooler's. */
static size_t write_limits(const struct pg *pg,
                           const struct pg_options *o,
                           size_t n,
                           char text[PG_SETTINGS])
{
    const char *set = o->transaction_pooling ? "SET LOCAL" : "SET";

    const struct {
        const char *name;
        int64_t value;
        bool is_known;
    } limits[] = {
        {"statement_timeout", o->statement_ms, true},
        {"lock_timeout", o->lock_ms, true},
        {"idle_in_transaction_session_timeout", o->idle_ms, true},
        {"idle_session_timeout", o->session_idle_ms, !o->transaction_pooling},
        {"transaction_timeout", 0,
         PQserverVersion(pg->conn) >= WITH_TRANSACTION_TIMEOUT},
    };

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        if (limits[i].is_known)
            n += (size_t)snprintf(text + n, PG_SETTINGS - n, "%s %s TO %lld; ", set,
                                  limits[i].name, (long long)limits[i].value);
    }
    return n;
}

static void
write_settings(const struct pg *pg, const struct pg_options *o, char text[PG_SETTINGS])
{
    const char *set = o->transaction_pooling ? "SET LOCAL" : "SET";
    size_t n = write_limits(pg, o, write_prints(set, text), text);

    n += (size_t)snprintf(text + n, PG_SETTINGS - n,
                          "%s search_path TO \"%s\", pg_temp; "
                          "%s client_min_messages TO warning; %s jit TO off",
                          set, pg->schema, set, set);
    if (o->plans_once)
        n +=
            (size_t)snprintf(text + n, PG_SETTINGS - n,
                             "; %s enable_seqscan TO off; %s enable_indexonlyscan TO "
                             "off; %s plan_cache_mode TO %s",
                             set, set, set, o->at_home ? "auto" : "force_generic_plan");
    if (o->at_home) /* all that a statement of a function reads is on this node */
        (void)snprintf(text + n, PG_SETTINGS - n,
                       "; %s citus.allow_nested_distributed_execution TO on", set);
}

/* ---- poolers ---- */

/* Reads the pid of the server process, by an unprepared statement. */
static int answering_pid(struct pg *pg, int64_t *pid, struct err *e)
{
    struct pg_result *res;
    int code = pg_exec_first(pg, (const char *)SQL_POOL_BACKEND_PID->text, &res, e);

    if (code != 0)
        return code;
    *pid = pg_get_int8(res, 0, 0);
    pg_result_free(res);
    return 0;
}

/* Uses two connections alternately. With lasting sessions each keeps its own server
 * process; an idle transaction pooler gives both the same process, a busy one gives
 * this connection another. */
static bool shares_sessions(struct pg *pg, struct pg *other, int64_t ours)
{
    struct err ignored = {0};
    int64_t theirs, again;

    for (int i = 0; i < PROBES; i++) {
        if (answering_pid(other, &theirs, &ignored) != 0 ||
            answering_pid(pg, &again, &ignored) != 0)
            return false;
        if (theirs == ours || again != ours)
            return true;
    }
    return false;
}

/* A pooler invents the process id that it reports at connect. Only if that id is wrong
 * a second connection is opened, to find out the kind of pooler. */
static int check_pooler(struct pg *pg, const struct pg_options *o, struct err *e)
{
    struct pg_options brief = *o;
    struct err ignored = {0};
    struct pg *other;
    int64_t pid;
    bool shared;

    if (answering_pid(pg, &pid, e) != 0)
        return (int)e->code;
    if (pid == PQbackendPID(pg->conn))
        return 0;
    brief.answer_ms = PROBE_MS;
    if (pg_connect(&other, &brief, &ignored) != 0)
        return 0; /* no room for a second connection: a limit on sessions means that
                     they last */
    shared = shares_sessions(pg, other, pid);
    pg_close(other);
    return shared ? err_set(e, ERR_CONFIG, "LL-3005 %s", unknown_pooler) : 0;
}

/* Applies the settings of the options. */
static int begin_session(struct pg *pg, const struct pg_options *o, struct err *e)
{
    char text[PG_SETTINGS];

    write_settings(pg, o, text);
    if (o->transaction_pooling) {
        memcpy(pg->settings, text, sizeof text);
        return 0;
    }
    if (check_pooler(pg, o, e) != 0)
        return (int)e->code;
    return pg_exec_first(pg, text, NULL, e);
}

/* ---- open ---- */

static int open_here(struct pg **out, const struct pg_options *o, struct err *e)
{
    if (pg_connect(out, o, e) != 0)
        return (int)e->code;
    if (begin_session(*out, o, e) != 0) {
        pg_close(*out);
        *out = NULL;
    }
    return (int)e->code;
}

/* The node of the tables; host is "" if that is this one, or if there are none yet. */
static int
read_home(struct pg *pg, char host[PG_HOST], char port[PG_PORT], struct err *e)
{
    struct pg_result *res;

    host[0] = '\0';
    if (pg_exec_first(pg, (const char *)SQL_CELLS_FIND_HOME->text, &res, e) != 0)
        return (int)e->code;
    if (pg_rows(res) > 0) {
        (void)snprintf(host, PG_HOST, "%s", pg_get_text(res, 0, 0));
        (void)snprintf(port, PG_PORT, "%" PRId64, pg_get_int8(res, 0, 1));
    }
    pg_result_free(res);
    return 0;
}

int pg_open(struct pg **out, const struct pg_options *o, struct err *e)
{
    char host[PG_HOST], port[PG_PORT];
    struct pg_options home = *o;

    if (open_here(out, o, e) != 0 || !o->at_home ||
        (read_home(*out, host, port, e) == 0 && host[0] == '\0'))
        return (int)e->code;
    pg_close(*out);
    *out = NULL;
    home.host = host;
    home.port = port;
    return e->code != 0 ? (int)e->code : open_here(out, &home, e);
}

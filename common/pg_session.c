/* pg_session: what a connection sets, for its session or for each of its transactions;
 * poolers; notifications. */
#include <stdio.h>
#include <string.h>

#include "common/pg_private.h"

enum { PROBES = 5, PROBE_MS = 1000 };

static const char unknown_pooler[] =
    "a pooler in transaction mode stands before PostgreSQL, so sessions do not last: "
    "set postgres.pooling to transaction (--pooling transaction), or name PostgreSQL "
    "itself in postgres.url";

/* ---- settings ---- */

static void write_settings(const struct pg_options *o, char text[PG_SETTINGS])
{
    const char *set = o->transaction_pooling ? "SET LOCAL" : "SET";

    const struct {
        const char *name;
        int64_t value;
    } limits[] = {
        {"statement_timeout", o->statement_ms},
        {"lock_timeout", o->lock_ms},
        {"idle_in_transaction_session_timeout", o->idle_ms},
    };

    size_t n = (size_t)snprintf(text, PG_SETTINGS,
                                "%s timezone TO 'UTC'; "
                                "%s client_min_messages TO warning; %s jit TO off",
                                set, set, set);

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        if (limits[i].value > 0)
            n += (size_t)snprintf(text + n, PG_SETTINGS - n, "; %s %s TO %lld", set,
                                  limits[i].name, (long long)limits[i].value);
    }
    if (o->plans_once)
        (void)snprintf(text + n, PG_SETTINGS - n,
                       "; %s enable_seqscan TO off; %s enable_indexonlyscan TO off; "
                       "%s plan_cache_mode TO force_generic_plan",
                       set, set, set);
}

/* ---- poolers ---- */

/* The process that answers us now, by an unprepared statement. */
static int answering_pid(struct pg *pg, int64_t *pid, struct err *e)
{
    struct pg_result *res;

    if (pg_exec_text(pg, (const char *)sql_texts[SQL_POOL_BACKEND_PID].text, &res, e) !=
        0)
        return (int)e->code;
    *pid = pg_get_int8(res, 0, 0);
    pg_result_free(res);
    return 0;
}

/* Two connections that take turns: where sessions last, each keeps its own process. An
 * idle pooler of transactions gives both the same one, a busy one gives us another. */
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

/* A pooler makes up the process id that it tells when we connect; only then it is worth
 * a second connection to see of what kind it is. */
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
        return 0; /* no place for a second one: whoever counts them lets them last */
    shared = shares_sessions(pg, other, pid);
    pg_close(other);
    return shared ? err_set(e, ERR_CONFIG, "%s", unknown_pooler) : 0;
}

int pg_begin_session(struct pg *pg, const struct pg_options *o, struct err *e)
{
    char text[PG_SETTINGS];

    write_settings(o, text);
    if (o->transaction_pooling) {
        memcpy(pg->settings, text, sizeof text);
        return 0;
    }
    if (check_pooler(pg, o, e) != 0)
        return (int)e->code;
    return pg_exec_text(pg, text, NULL, e);
}

/* ---- notifications ---- */

int pg_socket(const struct pg *pg)
{
    return PQsocket(pg->conn);
}

int pg_take_notified(struct pg *pg, bool *notified, struct err *e)
{
    PGnotify *note;

    *notified = false;
    if (PQconsumeInput(pg->conn) == 0)
        return pg_conn_error(pg, e, "PostgreSQL connection lost");
    while ((note = PQnotifies(pg->conn)) != NULL) {
        *notified = true;
        PQfreemem(note);
    }
    return 0;
}

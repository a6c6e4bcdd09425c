/* pg_io: waiting for the server with a deadline, and its errors by class. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pg/pg_private.h"

/* ---- errors ---- */

static const struct state {
    const char *prefix;
    enum err_code class;
    const char *code; /* of the message */
} states[] = {
    {"40", ERR_CONFLICT, "LL-3010"},   {"55P03", ERR_CONFLICT, "LL-3010"},
    {"57014", ERR_TIMEOUT, "LL-3011"}, {"23", ERR_CONSTRAINT, "LL-3012"},
    {"22", ERR_CONSTRAINT, "LL-3012"}, {"LL", ERR_CONSTRAINT, "LL-3012"},
    {"28", ERR_DENIED, "LL-3013"},     {"42501", ERR_DENIED, "LL-3013"},
    {"3D", ERR_DENIED, "LL-3013"},     {"42P01", ERR_SCHEMA, "LL-3014"},
    {"42703", ERR_SCHEMA, "LL-3014"},  {"42883", ERR_SCHEMA, "LL-3014"},
    {"3F000", ERR_SCHEMA, "LL-3014"},  {"25P03", ERR_CONN, "LL-3015"},
    {"57P", ERR_CONN, "LL-3015"},      {"53", ERR_CONN, "LL-3015"},
    {"08", ERR_CONN, "LL-3015"},       {"25006", ERR_CONN, "LL-3017"},
    {"58", ERR_CONN, "LL-3015"},       {"", ERR_BUG, "LL-3016"},
};

/* The first row that fits; the last one fits all. */
static const struct state *find_state(const char *state)
{
    const struct state *row = states;

    while (strncmp(state, row->prefix, strlen(row->prefix)) != 0)
        row++;
    return row;
}

static bool takes_no_writes(const char *state)
{
    return strcmp(state, "25006") == 0;
}

static void one_line(char *text)
{
    size_t n = strlen(text);

    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
        text[--n] = '\0';
    for (char *p = text; *p != '\0'; p++) {
        if (*p == '\n' || *p == '\t')
            *p = ' ';
    }
}

/* libpq has a line for each host and address that it tried; one that begins with a tab
 * belongs to the line above, and asks if the server runs. */
int pg_conn_error(struct pg *pg, struct err *e, const char *what)
{
    const char *line = PQerrorMessage(pg->conn);
    char lines[sizeof e->msg];
    size_t n = 0;

    lines[0] = '\0';
    for (size_t size; *line != '\0'; line += size + (line[size] == '\n')) {
        size = strcspn(line, "\n");
        if (line[0] != '\t' && size > 0 && n < sizeof lines - 1)
            n += (size_t)snprintf(lines + n, sizeof lines - n, "%s%.*s",
                                  n > 0 ? "; " : "", (int)size, line);
    }
    pg->broken = true;
    return err_set(e, ERR_CONN, "LL-3003 %s: %s", what, lines);
}

/* After an error of severity ERROR the session goes on: it may be of one row, as when a
 * trigger asks another server. In a server that takes no writes nothing goes on. */
static bool goes_on(const struct pg *pg, const PGresult *res, const char *state)
{
    const char *severity = PQresultErrorField(res, PG_DIAG_SEVERITY_NONLOCALIZED);

    return PQstatus(pg->conn) == CONNECTION_OK && severity != NULL &&
           strcmp(severity, "ERROR") == 0 && !takes_no_writes(state);
}

/* The next line of the context at or behind `text` that is of a function, NULL: none
 * is; its length goes to *n. Its words are in the server's language and order, but the
 * name of a procedural language and the signature of a function are in none. */
static const char *find_frame(const char *text, size_t *n)
{
    for (; text != NULL && *text != '\0'; text += *n + (text[*n] == '\n')) {
        const char *name = strstr(text, "PL/");

        *n = strcspn(text, "\n");
        if (name != NULL && name < text + *n)
            return text;
    }
    return NULL;
}

/* A trigger's function has no parameters, as in "PL/pgSQL function refuse() line 1 at
 * RAISE"; none of ours is in another procedural language. */
static bool is_in_trigger(const PGresult *res)
{
    const char *line = PQresultErrorField(res, PG_DIAG_CONTEXT);
    size_t n = 0;

    while ((line = find_frame(line, &n)) != NULL) {
        const char *call = strstr(line, "()");

        if ((call != NULL && call < line + n) ||
            strncmp(strstr(line, "PL/"), "PL/pgSQL", 8) != 0)
            return true;
        line += n;
    }
    return false;
}

/* Adds the place at which a statement waited or was slow: the first line of the
 * context, which may name the table, and the function. */
static void add_place(const PGresult *res, struct err *e)
{
    const char *line = PQresultErrorField(res, PG_DIAG_CONTEXT), *call;
    size_t n = strlen(e->msg), length = 0;

    if (line == NULL)
        return;
    (void)snprintf(e->msg + n, sizeof e->msg - n, " at: %.*s", (int)strcspn(line, "\n"),
                   line);
    n = strlen(e->msg);
    call = find_frame(line, &length);
    if (call != NULL && call > line)
        (void)snprintf(e->msg + n, sizeof e->msg - n, "; %.*s", (int)length, call);
}

int pg_result_error(struct pg *pg, const PGresult *res, struct err *e)
{
    const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
    const char *hint = PQresultErrorField(res, PG_DIAG_MESSAGE_HINT);
    const char *detail = PQresultErrorField(res, PG_DIAG_MESSAGE_DETAIL);
    const char *schema = PQresultErrorField(res, PG_DIAG_SCHEMA_NAME);
    const char *constraint = PQresultErrorField(res, PG_DIAG_CONSTRAINT_NAME);
    const struct state *row;

    if (state == NULL) /* libpq made this error itself: the connection is gone */
        return pg_conn_error(pg, e, "PostgreSQL connection lost");
    row = find_state(state);
    (void)err_set(e, row->class, "%s %s%s%s%s%s (SQLSTATE %s)%s", row->code,
                  text ? text : "error", detail ? "; " : "", detail ? detail : "",
                  hint ? "; " : "", hint ? hint : "", state,
                  takes_no_writes(state)
                      ? "; it is a standby, or its transactions are read-only: name in "
                        "postgres.url the server that takes writes"
                      : "");
    if (row->class == ERR_CONFLICT || row->class == ERR_TIMEOUT)
        add_place(res, e);
    (void)snprintf(e->sqlstate, sizeof e->sqlstate, "%s", state);
    e->is_in_trigger = is_in_trigger(res);
    if (constraint != NULL && schema != NULL) {
        bool is_ours = strcmp(schema, pg->schema) == 0;

        (void)snprintf(e->constraint, sizeof e->constraint, "%s%s%s",
                       is_ours ? "" : schema, is_ours ? "" : ".", constraint);
    }
    one_line(e->msg);
    if (!goes_on(pg, res, state))
        pg->broken = true;
    return (int)e->code;
}

/* ---- waiting ---- */

int pg_wait_socket(struct pg *pg, short events, int64_t deadline, struct err *e)
{
    struct pollfd p = {.fd = PQsocket(pg->conn), .events = events};

    for (;;) {
        int64_t left = deadline - clk_ms();
        int n;

        if (left <= 0) {
            pg->broken = true;
            return err_set(e, ERR_TIMEOUT, "LL-3004 PostgreSQL did not answer in time");
        }
        n = poll(&p, 1, left > 60000 ? 60000 : (int)left);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR) {
            pg->broken = true;
            return err_set(e, ERR_CONN, "LL-3002 poll: %s", strerror(errno));
        }
    }
}

int pg_flush(struct pg *pg, int64_t deadline, struct err *e)
{
    for (;;) {
        int n = PQflush(pg->conn);

        if (n == 0)
            return 0;
        if (n < 0)
            return pg_conn_error(pg, e, "PostgreSQL connection lost");
        if (pg_wait_socket(pg, POLLIN | POLLOUT, deadline, e) != 0)
            return (int)e->code;
        if (PQconsumeInput(pg->conn) == 0)
            return pg_conn_error(pg, e, "PostgreSQL connection lost");
    }
}

/* Next result, or NULL at the end of the answer. */
static int next_result(struct pg *pg, int64_t deadline, PGresult **res, struct err *e)
{
    while (PQisBusy(pg->conn) != 0) {
        if (pg_wait_socket(pg, POLLIN, deadline, e) != 0)
            return (int)e->code;
        if (PQconsumeInput(pg->conn) == 0)
            return pg_conn_error(pg, e, "PostgreSQL connection lost");
    }
    *res = PQgetResult(pg->conn);
    return 0;
}

/* Collects the whole answer: the last rows, or the first error. A COPY start ends it.
 */
int pg_collect(struct pg *pg, PGresult **last, struct err *e)
{
    int64_t deadline = clk_ms() + pg->answer_ms;
    PGresult *res = NULL;
    int code = pg_flush(pg, deadline, e);

    *last = NULL;
    while (code == 0) {
        ExecStatusType status;

        code = next_result(pg, deadline, &res, e);
        if (code != 0 || res == NULL)
            break;
        status = PQresultStatus(res);
        PQclear(*last);
        *last = res;
        if (status == PGRES_COPY_IN)
            break;
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
            struct err ignored = {0};

            code = pg_result_error(pg, res, e);
            while (!pg->broken && next_result(pg, deadline, &res, &ignored) == 0 && res)
                PQclear(res);
        }
    }
    if (code != 0) {
        PQclear(*last);
        *last = NULL;
    } else if (*last == NULL) {
        return pg_conn_error(pg, e, "PostgreSQL connection lost");
    }
    return code;
}

/* pg_io: waiting for the server with a deadline, and its errors by class. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/pg_private.h"

/* ---- errors ---- */

static enum err_code class_of(const char *state)
{
    static const struct {
        const char *prefix;
        enum err_code code;
    } table[] = {
        {"40", ERR_CONFLICT},   {"55P03", ERR_CONFLICT}, {"57014", ERR_TIMEOUT},
        {"23", ERR_CONSTRAINT}, {"22", ERR_CONSTRAINT},  {"LL", ERR_CONSTRAINT},
        {"28", ERR_DENIED},     {"42501", ERR_DENIED},   {"3D", ERR_DENIED},
        {"42P01", ERR_SCHEMA},  {"42703", ERR_SCHEMA},   {"42883", ERR_SCHEMA},
        {"3F000", ERR_SCHEMA},  {"25P03", ERR_CONN},     {"57P", ERR_CONN},
        {"53", ERR_CONN},       {"08", ERR_CONN},        {"25006", ERR_CONN},
        {"58", ERR_CONN},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strncmp(state, table[i].prefix, strlen(table[i].prefix)) == 0)
            return table[i].code;
    }
    return ERR_BUG;
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

int pg_conn_error(struct pg *pg, struct err *e, const char *what)
{
    pg->broken = true;
    (void)err_set(e, ERR_CONN, "%s: %s", what, PQerrorMessage(pg->conn));
    one_line(e->msg);
    return (int)e->code;
}

int pg_result_error(struct pg *pg, const PGresult *res, struct err *e)
{
    const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
    const char *hint = PQresultErrorField(res, PG_DIAG_MESSAGE_HINT);
    const char *detail = PQresultErrorField(res, PG_DIAG_MESSAGE_DETAIL);

    if (state == NULL) /* libpq made this error itself: the connection is gone */
        return pg_conn_error(pg, e, "PostgreSQL connection lost");
    (void)err_set(e, class_of(state), "%s%s%s%s%s (SQLSTATE %s)", text ? text : "error",
                  detail ? "; " : "", detail ? detail : "", hint ? "; " : "",
                  hint ? hint : "", state);
    (void)snprintf(e->sqlstate, sizeof e->sqlstate, "%s", state);
    one_line(e->msg);
    if (e->code == ERR_CONN || PQstatus(pg->conn) != CONNECTION_OK)
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
            return err_set(e, ERR_TIMEOUT, "PostgreSQL did not answer in time");
        }
        n = poll(&p, 1, left > 60000 ? 60000 : (int)left);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR) {
            pg->broken = true;
            return err_set(e, ERR_CONN, "poll: %s", strerror(errno));
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

/* Next result or NULL at the end of the answer. */
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
int pg_collect_by(struct pg *pg, int64_t deadline, PGresult **last, struct err *e)
{
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

int pg_collect(struct pg *pg, PGresult **last, struct err *e)
{
    return pg_collect_by(pg, clk_ms() + pg->answer_ms, last, e);
}

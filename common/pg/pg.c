/* pg: libpq behind deadlines: connect, statements, transactions. Never blocks
 * without a limit: every send and every answer goes through poll. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/secret.h"
#include "common/pg/pg_private.h"

enum { CONNECT_MS = 5000 };

/* ---- open and close ---- */

/* libpq's message about a malformed URL may quote the password: it is not shown. */
static int check_url(const char *url, struct err *e)
{
    PQconninfoOption *options = PQconninfoParse(url, NULL);

    if (options == NULL)
        return err_set(e, ERR_CONFIG,
                       "LL-3001 postgres.url cannot be read by libpq: write "
                       "postgresql://user@host:port/database or key=value words");
    PQconninfoFree(options);
    return 0;
}

static int finish_connect(struct pg *pg, struct err *e)
{
    int64_t deadline = clk_ms() + CONNECT_MS;
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;

    while (PQstatus(pg->conn) != CONNECTION_BAD) {
        if (status == PGRES_POLLING_OK)
            return 0;
        if (pg_wait_socket(pg, status == PGRES_POLLING_READING ? POLLIN : POLLOUT,
                           deadline, e) != 0)
            return err_wrap(e, "connecting to PostgreSQL");
        status = PQconnectPoll(pg->conn);
        if (status == PGRES_POLLING_FAILED)
            break;
    }
    return pg_conn_error(pg, e, "cannot connect to PostgreSQL");
}

static void quiet(void *arg, const PGresult *res)
{
    (void)arg;
    (void)res;
}

int pg_connect(struct pg **out, const struct pg_options *o, struct err *e)
{
    const char *keys[] = {"dbname",
                          "application_name",
                          "client_encoding",
                          "keepalives_idle",
                          "tcp_user_timeout",
                          "password",
                          NULL};
    const char *values[] = {o->url, o->name, "UTF8", "10", "10000", NULL, NULL};
    char password[256] = "";
    struct pg *pg = calloc(1, sizeof *pg);
    int code = 0;

    *out = NULL;
    if (pg == NULL)
        return err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    pg->answer_ms = o->answer_ms;
    pg->transaction_pooling = o->transaction_pooling;
    (void)snprintf(pg->schema, sizeof pg->schema, "%s",
                   o->schema != NULL ? o->schema : "pg_catalog");
    code = check_url(o->url, e);
    if (code == 0 && o->password_file != NULL && o->password_file[0] != '\0') {
        code = secret_read(o->password_file, password, sizeof password, e);
        values[5] = password;
    }
    if (code == 0) {
        pg->conn = PQconnectStartParams(keys, values, 1);
        secret_wipe(password, sizeof password);
        code = pg->conn == NULL ? err_set(e, ERR_NOMEM, "LL-9001 out of memory")
                                : finish_connect(pg, e);
    }
    if (code == 0) {
        (void)PQsetNoticeReceiver(pg->conn, quiet, NULL);
        (void)PQsetnonblocking(pg->conn, 1);
    }
    if (code != 0) {
        pg_close(pg);
        return code;
    }
    *out = pg;
    return 0;
}

void pg_close(struct pg *pg)
{
    if (pg == NULL)
        return;
    PQfinish(pg->conn);
    free(pg->prepared);
    free(pg->scratch);
    free(pg);
}

bool pg_is_usable(const struct pg *pg)
{
    return pg != NULL && !pg->broken;
}

/* ---- statements ---- */

int pg_hand_over(PGresult *last, struct pg_result **res, struct err *e)
{
    if (res == NULL) {
        PQclear(last);
        return 0;
    }
    *res = malloc(sizeof **res);
    if (*res == NULL) {
        PQclear(last);
        return err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    }
    (*res)->res = last;
    return 0;
}

int pg_must_be_usable(struct pg *pg, struct err *e)
{
    if (pg_is_usable(pg))
        return 0;
    return err_set(e, ERR_CONN, "LL-3002 the PostgreSQL connection is broken");
}

static bool is_prepared(const struct pg *pg, const struct sql_text *sql)
{
    for (size_t i = 0; i < pg->prepared_ct; i++) {
        if (pg->prepared[i] == sql)
            return true;
    }
    return false;
}

static int note_prepared(struct pg *pg, const struct sql_text *sql, struct err *e)
{
    size_t size = (pg->prepared_ct + 1) * sizeof(const struct sql_text *);
    const struct sql_text **more = realloc(pg->prepared, size);

    if (more == NULL)
        return err_set(e, ERR_NOMEM, "LL-9001 out of memory");
    pg->prepared = more;
    pg->prepared[pg->prepared_ct++] = sql;
    return 0;
}

/* Behind a transaction pooler only the unnamed statement is prepared: that finds a
 * typo, and nothing stays in the server's session. */
int pg_prepare(struct pg *pg, const struct sql_text *sql, struct err *e)
{
    const char *name;
    PGresult *last;

    if (pg_must_be_usable(pg, e) != 0)
        return (int)e->code;
    if (is_prepared(pg, sql))
        return 0;
    name = pg->transaction_pooling ? "" : sql->stem;
    if (PQsendPrepare(pg->conn, name, (const char *)sql->text, 0, NULL) == 0)
        return pg_conn_error(pg, e, sql->stem);
    if (pg_collect(pg, &last, e) != 0)
        return err_wrap(e, "prepare %s", sql->stem);
    PQclear(last);
    return pg->transaction_pooling ? 0 : note_prepared(pg, sql, e);
}

static int send_statement(struct pg *pg,
                          const struct sql_text *sql,
                          const struct pg_wire *w,
                          size_t n)
{
    if (pg->transaction_pooling)
        return PQsendQueryParams(pg->conn, (const char *)sql->text, (int)n, NULL,
                                 w->values, w->lengths, w->formats, 1);
    return PQsendQueryPrepared(pg->conn, sql->stem, (int)n, w->values, w->lengths,
                               w->formats, 1);
}

int pg_run(struct pg *pg,
           const struct sql_text *sql,
           const struct pg_param *params,
           size_t n,
           struct pg_result **res,
           struct err *e)
{
    struct pg_wire w;
    PGresult *last;

    if ((!pg->transaction_pooling && pg_prepare(pg, sql, e) != 0) ||
        pg_encode(pg, params, n, &w, e) != 0)
        return (int)e->code;
    if (send_statement(pg, sql, &w, n) == 0)
        return pg_conn_error(pg, e, sql->stem);
    if (pg_collect(pg, &last, e) != 0)
        return err_wrap(e, "%s", sql->stem);
    return pg_hand_over(last, res, e);
}

int pg_exec_text(struct pg *pg, const char *text, struct pg_result **res, struct err *e)
{
    PGresult *last;

    if (res != NULL)
        *res = NULL;
    if (pg_must_be_usable(pg, e) != 0)
        return (int)e->code;
    if (PQsendQuery(pg->conn, text) == 0)
        return pg_conn_error(pg, e, "send");
    if (pg_collect(pg, &last, e) != 0)
        return (int)e->code;
    return pg_hand_over(last, res, e);
}

int pg_backend_pid(const struct pg *pg)
{
    return PQbackendPID(pg->conn);
}

const char *pg_schema(const struct pg *pg)
{
    return pg->schema;
}

const char *pg_host(const struct pg *pg)
{
    return PQhost(pg->conn);
}

const char *pg_port(const struct pg *pg)
{
    return PQport(pg->conn);
}

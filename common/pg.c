/* pg: libpq behind deadlines: connect, statements, transactions, COPY. Never blocks
 * without a limit: every send and every answer goes through poll. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/pg_private.h"
#include "common/secret.h"
#include "common/sql_mutant.h"

enum { CONNECT_MS = 5000 };

/* ---- open and close ---- */

/* What libpq says of a URL that it cannot read may quote the password. */
static int check_url(const char *url, struct err *e)
{
    PQconninfoOption *options = PQconninfoParse(url, NULL);

    if (options == NULL)
        return err_set(e, ERR_CONFIG,
                       "postgres.url cannot be read by libpq: write "
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
    (void)pg_conn_error(pg, e, "cannot connect to PostgreSQL");
    if (strstr(e->msg, "password") != NULL ||
        strstr(e->msg, "authentication") != NULL ||
        strstr(e->msg, "does not exist") != NULL ||
        strstr(e->msg, "no such ") != NULL || strstr(e->msg, "no pg_hba") != NULL)
        e->code = ERR_DENIED;
    return (int)e->code;
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
        return err_set(e, ERR_NOMEM, "out of memory");
    pg->answer_ms = o->answer_ms;
    pg->transaction_pooling = o->transaction_pooling;
    code = check_url(o->url, e);
    if (code == 0 && o->password_file != NULL && o->password_file[0] != '\0') {
        code = secret_read(o->password_file, password, sizeof password, e);
        values[5] = password;
    }
    if (code == 0) {
        pg->conn = PQconnectStartParams(keys, values, 1);
        secret_wipe(password, sizeof password);
        code = pg->conn == NULL ? err_set(e, ERR_NOMEM, "out of memory")
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

int pg_open(struct pg **out, const struct pg_options *o, struct err *e)
{
    if (pg_connect(out, o, e) != 0)
        return (int)e->code;
    if (pg_begin_session(*out, o, e) != 0) {
        pg_close(*out);
        *out = NULL;
    }
    return (int)e->code;
}

void pg_close(struct pg *pg)
{
    if (pg == NULL)
        return;
    PQfinish(pg->conn);
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
        return err_set(e, ERR_NOMEM, "out of memory");
    }
    (*res)->res = last;
    return 0;
}

int pg_must_be_usable(struct pg *pg, struct err *e)
{
    if (pg_is_usable(pg))
        return 0;
    return err_set(e, ERR_CONN, "the PostgreSQL connection is broken");
}

/* Behind a pooler only the unnamed statement is prepared, so that a typo is found; it
 * is gone with the answer. */
int pg_prepare(struct pg *pg, enum sql_id id, struct err *e)
{
    const struct sql_text *sql = &sql_texts[id];
    const char *name;
    PGresult *last;

    if (pg_must_be_usable(pg, e) != 0)
        return (int)e->code;
    if (pg->prepared[id])
        return 0;
    name = pg->transaction_pooling ? "" : sql->stem;
    if (PQsendPrepare(pg->conn, name, SQL_TEXT(sql->stem, (const char *)sql->text), 0,
                      NULL) == 0)
        return pg_conn_error(pg, e, sql->stem);
    if (pg_collect(pg, &last, e) != 0)
        return err_wrap(e, "prepare %s", sql->stem);
    PQclear(last);
    pg->prepared[id] = !pg->transaction_pooling;
    return 0;
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

int pg_exec(struct pg *pg,
            enum sql_id id,
            const struct pg_param *params,
            size_t n,
            struct pg_result **res,
            struct err *e)
{
    struct pg_wire w;
    PGresult *last;

    if (res != NULL)
        *res = NULL;
    if (pg_must_be_usable(pg, e) != 0 ||
        (!pg->transaction_pooling && pg_prepare(pg, id, e) != 0) ||
        pg_encode(pg, params, n, &w, e) != 0)
        return (int)e->code;
    if (send_statement(pg, &sql_texts[id], &w, n) == 0)
        return pg_conn_error(pg, e, sql_texts[id].stem);
    if (pg_collect(pg, &last, e) != 0)
        return err_wrap(e, "%s", sql_texts[id].stem);
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

/* ---- transactions ---- */

static int begin(struct pg *pg, const char *isolation, struct err *e)
{
    char text[PG_SETTINGS + 80];

    (void)snprintf(text, sizeof text, "BEGIN ISOLATION LEVEL %s; %s", isolation,
                   pg->settings);
    return pg_exec_text(pg, text, NULL, e);
}

int pg_begin(struct pg *pg, struct err *e)
{
    return begin(pg, "READ COMMITTED", e);
}

int pg_begin_snapshot(struct pg *pg, struct err *e)
{
    return begin(pg, "REPEATABLE READ READ ONLY", e);
}

int pg_commit(struct pg *pg, struct err *e)
{
    PGresult *last;
    bool rolled_back;

    if (pg_must_be_usable(pg, e) != 0)
        return (int)e->code; /* COMMIT was never sent: the server rolls back */
    if (PQtransactionStatus(pg->conn) == PQTRANS_INERROR) {
        pg_rollback(pg);
        return err_set(e, ERR_BUG, "commit of a failed transaction");
    }
    if (PQsendQuery(pg->conn, "COMMIT") == 0)
        return pg_conn_error(pg, e, "commit");
    if (pg_collect(pg, &last, e) != 0) {
        if (e->sqlstate[0] == '\0' || strncmp(e->sqlstate, "57P", 3) == 0)
            e->code = ERR_UNKNOWN; /* sent, and nobody told us what became of it */
        return err_wrap(e, "commit");
    }
    rolled_back = strcmp(PQcmdStatus(last), "COMMIT") != 0;
    PQclear(last);
    return rolled_back ? err_set(e, ERR_BUG, "COMMIT rolled back") : 0;
}

void pg_rollback(struct pg *pg)
{
    struct err ignored = {0};

    if (!pg_is_usable(pg) || PQtransactionStatus(pg->conn) == PQTRANS_IDLE)
        return;
    if (PQtransactionStatus(pg->conn) == PQTRANS_ACTIVE)
        pg->broken = true; /* an answer was not waited for */
    else
        (void)!pg_exec_text(pg, "ROLLBACK", NULL, &ignored);
}

/* ---- COPY ---- */

int pg_copy_begin(struct pg *pg, enum sql_id id, struct err *e)
{
    PGresult *last;
    bool copying;

    if (pg_must_be_usable(pg, e) != 0)
        return (int)e->code;
    if (PQsendQuery(pg->conn, (const char *)sql_texts[id].text) == 0)
        return pg_conn_error(pg, e, sql_texts[id].stem);
    if (pg_collect(pg, &last, e) != 0)
        return err_wrap(e, "%s", sql_texts[id].stem);
    copying = PQresultStatus(last) == PGRES_COPY_IN;
    PQclear(last);
    return copying ? 0 : err_set(e, ERR_BUG, "%s is no COPY", sql_texts[id].stem);
}

int pg_copy_put(struct pg *pg, const char *data, size_t n, struct err *e)
{
    int64_t deadline = clk_ms() + pg->answer_ms;

    for (;;) {
        int sent = PQputCopyData(pg->conn, data, (int)n);

        if (sent == 1)
            return pg_flush(pg, deadline, e);
        if (sent < 0)
            return pg_conn_error(pg, e, "copy");
        if (pg_wait_socket(pg, POLLOUT, deadline, e) != 0)
            return (int)e->code;
    }
}

int pg_copy_end(struct pg *pg, const char *cancel_reason, struct err *e)
{
    PGresult *last;

    if (pg_must_be_usable(pg, e) != 0)
        return (int)e->code;
    if (PQputCopyEnd(pg->conn, cancel_reason) != 1)
        return pg_conn_error(pg, e, "copy");
    if (pg_collect(pg, &last, e) != 0)
        return err_wrap(e, "copy");
    PQclear(last);
    return 0;
}

int pg_server_version(const struct pg *pg)
{
    return PQserverVersion(pg->conn);
}

int pg_backend_pid(const struct pg *pg)
{
    return PQbackendPID(pg->conn);
}

const char *pg_host(const struct pg *pg)
{
    return PQhost(pg->conn);
}

const char *pg_port(const struct pg *pg)
{
    return PQport(pg->conn);
}

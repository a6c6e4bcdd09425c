/* pg: libpq behind deadlines. Never blocks without a limit: every send and every answer
 * goes through poll. */
#include "common/pg.h"

#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/secret.h"

struct pg {
    PGconn *conn;
    int64_t answer_ms;
    bool broken;
    bool prepared[SQL_COUNT + 1];
    unsigned char *scratch; /* binary arrays of the statement being sent */
    size_t scratch_size;
};

struct pg_result {
    PGresult *res;
};

enum { MAX_PARAMS = 16, CONNECT_MS = 5000 };

/* ---- errors ---------------------------------------------------------------- */

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
        {"53", ERR_CONN},       {"08", ERR_CONN},        {"25006", ERR_REFUSED},
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

static int conn_error(struct pg *pg, struct err *e, const char *what)
{
    pg->broken = true;
    (void)err_set(e, ERR_CONN, "%s: %s", what, PQerrorMessage(pg->conn));
    one_line(e->msg);
    return (int)e->code;
}

static int result_error(struct pg *pg, const PGresult *res, struct err *e)
{
    const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
    const char *hint = PQresultErrorField(res, PG_DIAG_MESSAGE_HINT);
    const char *detail = PQresultErrorField(res, PG_DIAG_MESSAGE_DETAIL);

    if (state == NULL) /* libpq made this error itself: the connection is gone */
        return conn_error(pg, e, "PostgreSQL connection lost");
    (void)err_set(e, class_of(state), "%s%s%s%s%s (SQLSTATE %s)", text ? text : "error",
                  detail ? "; " : "", detail ? detail : "", hint ? "; " : "",
                  hint ? hint : "", state);
    (void)snprintf(e->sqlstate, sizeof e->sqlstate, "%s", state);
    one_line(e->msg);
    if (e->code == ERR_CONN || PQstatus(pg->conn) != CONNECTION_OK)
        pg->broken = true;
    return (int)e->code;
}

/* ---- waiting --------------------------------------------------------------- */

static int wait_socket(struct pg *pg, short events, int64_t deadline, struct err *e)
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

static int flush(struct pg *pg, int64_t deadline, struct err *e)
{
    for (;;) {
        int n = PQflush(pg->conn);

        if (n == 0)
            return 0;
        if (n < 0)
            return conn_error(pg, e, "PostgreSQL connection lost");
        if (wait_socket(pg, POLLIN | POLLOUT, deadline, e) != 0)
            return (int)e->code;
        if (PQconsumeInput(pg->conn) == 0)
            return conn_error(pg, e, "PostgreSQL connection lost");
    }
}

/* Next result or NULL at the end of the answer. */
static int next_result(struct pg *pg, int64_t deadline, PGresult **res, struct err *e)
{
    while (PQisBusy(pg->conn) != 0) {
        if (wait_socket(pg, POLLIN, deadline, e) != 0)
            return (int)e->code;
        if (PQconsumeInput(pg->conn) == 0)
            return conn_error(pg, e, "PostgreSQL connection lost");
    }
    *res = PQgetResult(pg->conn);
    return 0;
}

/* Collects the whole answer: the last rows, or the first error. A COPY start ends it.
 */
static int collect(struct pg *pg, PGresult **last, struct err *e)
{
    int64_t deadline = clk_ms() + pg->answer_ms;
    PGresult *res = NULL;
    int code = flush(pg, deadline, e);

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

            code = result_error(pg, res, e);
            while (!pg->broken && next_result(pg, deadline, &res, &ignored) == 0 && res)
                PQclear(res);
        }
    }
    if (code != 0) {
        PQclear(*last);
        *last = NULL;
    } else if (*last == NULL) {
        return conn_error(pg, e, "PostgreSQL connection lost");
    }
    return code;
}

/* ---- open and close -------------------------------------------------------- */

static int finish_connect(struct pg *pg, struct err *e)
{
    int64_t deadline = clk_ms() + CONNECT_MS;
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;

    while (PQstatus(pg->conn) != CONNECTION_BAD) {
        if (status == PGRES_POLLING_OK)
            return 0;
        if (wait_socket(pg, status == PGRES_POLLING_READING ? POLLIN : POLLOUT,
                        deadline, e) != 0)
            return err_wrap(e, "connecting to PostgreSQL");
        status = PQconnectPoll(pg->conn);
        if (status == PGRES_POLLING_FAILED)
            break;
    }
    (void)conn_error(pg, e, "cannot connect to PostgreSQL");
    if (strstr(e->msg, "password") != NULL ||
        strstr(e->msg, "authentication") != NULL ||
        strstr(e->msg, "does not exist") != NULL || strstr(e->msg, "no pg_hba") != NULL)
        e->code = ERR_DENIED;
    return (int)e->code;
}

static int set_session(struct pg *pg, const struct pg_options *o, struct err *e)
{
    char text[256];

    (void)snprintf(text, sizeof text,
                   "SET timezone TO 'UTC'; SET client_min_messages TO warning; "
                   "SET statement_timeout TO %lld; SET lock_timeout TO %lld; "
                   "SET idle_in_transaction_session_timeout TO %lld",
                   (long long)o->statement_ms, (long long)o->lock_ms,
                   (long long)o->idle_ms);
    return pg_exec_text(pg, text, NULL, e);
}

static void quiet(void *arg, const PGresult *res)
{
    (void)arg;
    (void)res;
}

int pg_open(struct pg **out, const struct pg_options *o, struct err *e)
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
    if (o->password_file != NULL && o->password_file[0] != '\0') {
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
        code = set_session(pg, o, e);
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
    free(pg->scratch);
    free(pg);
}

bool pg_is_usable(const struct pg *pg)
{
    return pg != NULL && !pg->broken;
}

/* ---- parameters ------------------------------------------------------------ */

struct pg_param pg_null(void)
{
    return (struct pg_param){.type = PG_NULL};
}

struct pg_param pg_int8(int64_t value)
{
    return (struct pg_param){.type = PG_INT8, .int8 = value};
}

struct pg_param pg_text(const char *text)
{
    if (text == NULL)
        return pg_null();
    return (struct pg_param){.type = PG_TEXT, .text = text};
}

struct pg_param pg_int8_array(const int64_t *values, size_t n)
{
    return (struct pg_param){.type = PG_INT8_ARRAY, .array = values, .n = n};
}

enum { INT8_OID = 20, ARRAY_HEAD = 20, ARRAY_ITEM = 12 };

static unsigned char *put4(unsigned char *p, uint32_t v)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        *p++ = (unsigned char)(v >> shift);
    return p;
}

static unsigned char *put8(unsigned char *p, int64_t v)
{
    p = put4(p, (uint32_t)((uint64_t)v >> 32));
    return put4(p, (uint32_t)(uint64_t)v);
}

static size_t array_size(size_t n)
{
    return n == 0 ? 12 : ARRAY_HEAD + n * ARRAY_ITEM;
}

/* int8[] on the wire: dimensions, has-null flag, element type, then per dimension its
 * length and lower bound, then every element with its length before it. */
static unsigned char *put_array(unsigned char *p, const int64_t *values, size_t n)
{
    p = put4(p, n == 0 ? 0 : 1);
    p = put4(p, 0);
    p = put4(p, INT8_OID);
    if (n == 0)
        return p;
    p = put4(p, (uint32_t)n);
    p = put4(p, 1);
    for (size_t i = 0; i < n; i++) {
        p = put4(p, 8);
        p = put8(p, values[i]);
    }
    return p;
}

struct wire {
    const char *values[MAX_PARAMS];
    int lengths[MAX_PARAMS];
    int formats[MAX_PARAMS];
};

static size_t param_size(const struct pg_param *p)
{
    if (p->type == PG_INT8)
        return 8;
    return p->type == PG_INT8_ARRAY ? array_size(p->n) : 0;
}

static int
reserve_scratch(struct pg *pg, const struct pg_param *params, size_t n, struct err *e)
{
    size_t need = 1;
    unsigned char *bigger;

    for (size_t i = 0; i < n; i++)
        need += param_size(&params[i]);
    if (need <= pg->scratch_size)
        return 0;
    bigger = realloc(pg->scratch, need);
    if (bigger == NULL)
        return err_set(e, ERR_NOMEM, "out of memory");
    pg->scratch = bigger;
    pg->scratch_size = need;
    return 0;
}

static int encode(struct pg *pg,
                  const struct pg_param *params,
                  size_t n,
                  struct wire *w,
                  struct err *e)
{
    unsigned char *p;

    if (n > MAX_PARAMS)
        return err_set(e, ERR_BUG, "too many parameters");
    if (reserve_scratch(pg, params, n, e) != 0)
        return (int)e->code;
    p = pg->scratch;
    for (size_t i = 0; i < n; i++) {
        const struct pg_param *param = &params[i];

        w->formats[i] = param->type != PG_TEXT;
        w->lengths[i] = (int)param_size(param);
        w->values[i] = param->type == PG_NULL ? NULL : (const char *)p;
        if (param->type == PG_TEXT)
            w->values[i] = param->text;
        else if (param->type == PG_INT8)
            p = put8(p, param->int8);
        else if (param->type == PG_INT8_ARRAY)
            p = put_array(p, param->array, param->n);
    }
    return 0;
}

/* ---- statements ------------------------------------------------------------ */

static int hand_over(PGresult *last, struct pg_result **res, struct err *e)
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

static int usable(struct pg *pg, struct err *e)
{
    if (pg_is_usable(pg))
        return 0;
    return err_set(e, ERR_CONN, "the PostgreSQL connection is broken");
}

int pg_prepare(struct pg *pg, enum sql_id id, struct err *e)
{
    const struct sql_text *sql = &sql_texts[id];
    PGresult *last;

    if (usable(pg, e) != 0)
        return (int)e->code;
    if (pg->prepared[id])
        return 0;
    if (PQsendPrepare(pg->conn, sql->stem, (const char *)sql->text, 0, NULL) == 0)
        return conn_error(pg, e, sql->stem);
    if (collect(pg, &last, e) != 0)
        return err_wrap(e, "prepare %s", sql->stem);
    PQclear(last);
    pg->prepared[id] = true;
    return 0;
}

int pg_exec(struct pg *pg,
            enum sql_id id,
            const struct pg_param *params,
            size_t n,
            struct pg_result **res,
            struct err *e)
{
    struct wire w;
    PGresult *last;

    if (res != NULL)
        *res = NULL;
    if (pg_prepare(pg, id, e) != 0 || encode(pg, params, n, &w, e) != 0)
        return (int)e->code;
    if (PQsendQueryPrepared(pg->conn, sql_texts[id].stem, (int)n, w.values, w.lengths,
                            w.formats, 1) == 0)
        return conn_error(pg, e, sql_texts[id].stem);
    if (collect(pg, &last, e) != 0)
        return err_wrap(e, "%s", sql_texts[id].stem);
    return hand_over(last, res, e);
}

int pg_exec_text(struct pg *pg, const char *text, struct pg_result **res, struct err *e)
{
    PGresult *last;

    if (res != NULL)
        *res = NULL;
    if (usable(pg, e) != 0)
        return (int)e->code;
    if (PQsendQuery(pg->conn, text) == 0)
        return conn_error(pg, e, "send");
    if (collect(pg, &last, e) != 0)
        return (int)e->code;
    return hand_over(last, res, e);
}

/* ---- transactions ---------------------------------------------------------- */

int pg_begin(struct pg *pg, struct err *e)
{
    return pg_exec_text(pg, "BEGIN ISOLATION LEVEL READ COMMITTED", NULL, e);
}

int pg_begin_snapshot(struct pg *pg, struct err *e)
{
    return pg_exec_text(pg, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL, e);
}

int pg_commit(struct pg *pg, struct err *e)
{
    PGresult *last;
    bool rolled_back;

    if (usable(pg, e) != 0)
        return (int)e->code; /* COMMIT was never sent: the server rolls back */
    if (PQtransactionStatus(pg->conn) == PQTRANS_INERROR) {
        pg_rollback(pg);
        return err_set(e, ERR_BUG, "commit of a failed transaction");
    }
    if (PQsendQuery(pg->conn, "COMMIT") == 0)
        return conn_error(pg, e, "commit");
    if (collect(pg, &last, e) != 0) {
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

    if (pg_is_usable(pg) && PQtransactionStatus(pg->conn) != PQTRANS_IDLE)
        (void)!pg_exec_text(pg, "ROLLBACK", NULL, &ignored);
}

/* ---- rows ------------------------------------------------------------------ */

size_t pg_rows(const struct pg_result *res)
{
    return (size_t)PQntuples(res->res);
}

size_t pg_columns(const struct pg_result *res)
{
    return (size_t)PQnfields(res->res);
}

bool pg_is_null(const struct pg_result *res, size_t row, size_t column)
{
    return PQgetisnull(res->res, (int)row, (int)column) == 1;
}

int64_t pg_get_int8(const struct pg_result *res, size_t row, size_t column)
{
    const char *value = PQgetvalue(res->res, (int)row, (int)column);
    int n = PQgetlength(res->res, (int)row, (int)column);
    uint64_t v;

    if (pg_is_null(res, row, column))
        return 0;
    if (PQfformat(res->res, (int)column) == 0)
        return strtoll(value, NULL, 10);
    v = n > 0 && ((unsigned char)value[0] & 0x80) != 0 ? UINT64_MAX : 0;
    for (int i = 0; i < n; i++)
        v = v << 8 | (unsigned char)value[i];
    return (int64_t)v;
}

const char *pg_get_text(const struct pg_result *res, size_t row, size_t column)
{
    return PQgetvalue(res->res, (int)row, (int)column);
}

const char *pg_column_name(const struct pg_result *res, size_t column)
{
    return PQfname(res->res, (int)column);
}

void pg_result_free(struct pg_result *res)
{
    if (res == NULL)
        return;
    PQclear(res->res);
    free(res);
}

/* ---- COPY ------------------------------------------------------------------ */

int pg_copy_begin(struct pg *pg, enum sql_id id, struct err *e)
{
    PGresult *last;
    bool copying;

    if (usable(pg, e) != 0)
        return (int)e->code;
    if (PQsendQuery(pg->conn, (const char *)sql_texts[id].text) == 0)
        return conn_error(pg, e, sql_texts[id].stem);
    if (collect(pg, &last, e) != 0)
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
            return flush(pg, deadline, e);
        if (sent < 0)
            return conn_error(pg, e, "copy");
        if (wait_socket(pg, POLLOUT, deadline, e) != 0)
            return (int)e->code;
    }
}

int pg_copy_end(struct pg *pg, const char *cancel_reason, struct err *e)
{
    PGresult *last;

    if (usable(pg, e) != 0)
        return (int)e->code;
    if (PQputCopyEnd(pg->conn, cancel_reason) != 1)
        return conn_error(pg, e, "copy");
    if (collect(pg, &last, e) != 0)
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

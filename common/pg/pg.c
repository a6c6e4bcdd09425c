/* pg: libpq behind deadlines: statements and what they answer. Never blocks without a
 * limit: every send and every answer goes through poll. */
#include <stdlib.h>

#include "common/pg/pg_private.h"

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
    if (PQsendPrepare(pg->conn, name, pg_named(pg, (const char *)sql->text), 0, NULL) ==
        0)
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
        return PQsendQueryParams(pg->conn, pg_named(pg, (const char *)sql->text),
                                 (int)n, NULL, w->values, w->lengths, w->formats, 1);
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

int pg_send_text(struct pg *pg, const char *text, struct pg_result **res, struct err *e)
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

int pg_exec_text(struct pg *pg, const char *text, struct pg_result **res, struct err *e)
{
    return pg_send_text(pg, pg_named(pg, text), res, e);
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

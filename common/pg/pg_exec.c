/* pg_exec: one statement, in the open transaction or by itself. */
#include "common/pg/pg_private.h"

/* Behind a transaction pooler: a statement on its own needs a transaction that carries
 * the settings. */
static int exec_alone(struct pg *pg,
                      const struct sql_text *sql,
                      const struct pg_param *params,
                      size_t n,
                      struct pg_result **res,
                      struct err *e)
{
    if (pg_begin(pg, e) != 0)
        return (int)e->code;
    if (pg_run(pg, sql, params, n, res, e) == 0 && pg_commit(pg, e) != 0) {
        if (res != NULL) {
            pg_result_free(*res);
            *res = NULL;
        }
        if (e->code == ERR_UNKNOWN)
            e->code = ERR_CONN; /* as without the transaction */
    }
    pg_rollback(pg);
    return (int)e->code;
}

int pg_exec(struct pg *pg,
            const struct sql_text *sql,
            const struct pg_param *params,
            size_t n,
            struct pg_result **res,
            struct err *e)
{
    if (res != NULL)
        *res = NULL;
    if (pg_must_be_usable(pg, e) != 0)
        return (int)e->code;
    if (pg->transaction_pooling && PQtransactionStatus(pg->conn) == PQTRANS_IDLE)
        return exec_alone(pg, sql, params, n, res, e);
    return pg_run(pg, sql, params, n, res, e);
}

int pg_ask(struct pg *pg,
           const struct sql_text *sql,
           const struct pg_param *params,
           size_t n,
           int64_t *answer,
           struct err *e)
{
    struct pg_result *res;

    if (pg_exec(pg, sql, params, n, &res, e) != 0)
        return (int)e->code;
    *answer = pg_get_int8(res, 0, 0);
    pg_result_free(res);
    return 0;
}

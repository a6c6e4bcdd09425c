/* pg_private: types and functions that the files of pg share. */
#ifndef LEDGERLOCK_PG_PRIVATE_H
#define LEDGERLOCK_PG_PRIVATE_H

#include <libpq-fe.h>

#include "common/pg/pg.h"

enum { PG_MAX_PARAMS = 16, PG_SETTINGS = 1280 };

struct pg {
    PGconn *conn;
    int64_t answer_ms;
    bool broken;
    bool transaction_pooling;
    char schema[64];
    char role_prefix[32];
    char *named; /* the text being sent, with the names of its roles; NULL: none had any
                  */
    char settings[PG_SETTINGS];       /* sent with every BEGIN; empty: set once for the
                                         session */
    const struct sql_text **prepared; /* in this session; the caller's, by address */
    size_t prepared_ct;
    unsigned char *scratch; /* binary parameters of the statement being sent */
    size_t scratch_size;
};

struct pg_result {
    PGresult *res;
};

/* Parameters as libpq wants them; values point into pg->scratch and borrowed text. */
struct pg_wire {
    const char *values[PG_MAX_PARAMS];
    int lengths[PG_MAX_PARAMS];
    int formats[PG_MAX_PARAMS];
};

MUST_CHECK int pg_encode(struct pg *pg,
                         const struct pg_param *params,
                         size_t n,
                         struct pg_wire *w,
                         struct err *e);

/* Makes *res of the last result, or frees it if res is NULL. */
MUST_CHECK int pg_hand_over(PGresult *last, struct pg_result **res, struct err *e);

/* ERR_CONN on a broken connection. */
MUST_CHECK int pg_must_be_usable(struct pg *pg, struct err *e);

/* Marks the connection broken; ERR_CONN with libpq's own words. */
int pg_conn_error(struct pg *pg, struct err *e, const char *what);

/* The error of a result, classed by SQLSTATE. */
int pg_result_error(struct pg *pg, const PGresult *res, struct err *e);

/* Waits for the socket: 0, or ERR_TIMEOUT at the deadline with the connection broken.
 */
MUST_CHECK int
pg_wait_socket(struct pg *pg, short events, int64_t deadline, struct err *e);

/* Sends the buffered data. */
MUST_CHECK int pg_flush(struct pg *pg, int64_t deadline, struct err *e);

/* Collects the whole answer: the last rows, or the first error. A COPY start ends it.
 */
MUST_CHECK int pg_collect(struct pg *pg, PGresult **last, struct err *e);

/* As pg_exec_text, for what comes before our limits hold: until then a statement may
 * meet one of the database, however short, and is sent again. A transaction that it
 * began is rolled back before. */
MUST_CHECK int
pg_exec_first(struct pg *pg, const char *text, struct pg_result **res, struct err *e);

/* A text of this program with the roles of the connection, until the next call. NULL
 * without memory, which libpq refuses to send. */
const char *pg_named(struct pg *pg, const char *text);

/* As pg_exec_text, for a text that is no constant of this program: sent as it is. */
MUST_CHECK int
pg_send_text(struct pg *pg, const char *text, struct pg_result **res, struct err *e);

/* Connects only: no settings. */
MUST_CHECK int
pg_connect(struct pg **out, const struct pg_options *options, struct err *e);

/* As pg_exec, but without a transaction of its own behind a transaction pooler. */
MUST_CHECK int pg_run(struct pg *pg,
                      const struct sql_text *sql,
                      const struct pg_param *params,
                      size_t n,
                      struct pg_result **res,
                      struct err *e);

#endif

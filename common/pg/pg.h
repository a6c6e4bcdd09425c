/* pg: the only includer of libpq. One connection, prepared statements by id, binary
 * parameters and results, a client-side deadline on every answer.
 *
 * Every statement is a file in sql/queries; its stem is its id, its prepared name and
 * its name in logs. A connection on which an answer was late or lost is broken: it can
 * only be closed. */
#ifndef LEDGERLOCK_PG_H
#define LEDGERLOCK_PG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "sql_gen.h"

struct pg;
struct pg_result;

/* How to connect. All strings are borrowed during pg_open only. */
struct pg_options {
    const char *url;           /* libpq connection string or URL */
    const char *password_file; /* first line is the password; NULL: none */
    const char *name;          /* application_name */
    const char *schema;        /* in which names without one are found, behind
                                  pg_catalog; NULL: pg_catalog alone */
    const char *role_prefix;   /* of the roles in texts; NULL: the usual one */
    int64_t answer_ms;         /* longest wait for any one answer; > 0 */
    /* Limits at the server; 0: none, whatever the database or the role has: */
    int64_t statement_ms;    /* statement_timeout */
    int64_t lock_ms;         /* lock_timeout */
    int64_t idle_ms;         /* idle_in_transaction_session_timeout */
    int64_t session_idle_ms; /* idle_session_timeout */
    bool plans_once; /* each statement is planned once for all values, by index where
                        one will do: the plan is kept when the tables have grown. No
                        index-only scan: it copies all that matches on a page to return
                        one entry */
    bool at_home;    /* the schema is one of a Citus cluster: the session is of the node
                        that has its tables, wherever the URL leads */
    const char *host, *port;  /* instead of those of the URL; NULL: those */
    bool transaction_pooling; /* a pooler gives us another session for every
                                 transaction: nothing is left in one */
};

/* Opens a connection, sets UTC, the timeouts and how to plan: for the session, or with
 * transaction_pooling for every transaction, in one round trip with its BEGIN; pg_exec
 * then gives a statement outside a transaction one of its own. On failure
 * *out is NULL; ERR_CONN (also for a refused login: libpq has no SQLSTATE of a
 * connection that failed, and its words are in the server's language), ERR_TIMEOUT,
 * ERR_CONFIG (the password file; a transaction pooler although the options say
 * session), each with advice in its message. Caller closes with pg_close. */
MUST_CHECK int
pg_open(struct pg **out, const struct pg_options *options, struct err *e);

/* Texts of this program name roles with this prefix: ledgerlock_worker, and seven more.
 * Every statement is sent with that of the options in its place. */
#define PG_ROLE_PREFIX "ledgerlock"

/* Copies such a text with another prefix, as snprintf: returns the length of the whole.
 */
size_t pg_name_roles(const char *prefix, const char *text, char *out, size_t size);

/* ERR_CONFIG when libpq cannot read the connection string or URL. */
MUST_CHECK int pg_check_url(const char *url, struct err *e);

/* Closes and frees; accepts NULL. Never waits. */
void pg_close(struct pg *pg);

/* True while the connection may be used. */
bool pg_is_usable(const struct pg *pg);

/* Place of a row version in its table (ctid); valid until the row is written. */
struct pg_tid {
    uint32_t block;
    uint16_t offset; /* 0: no place */
};

/* One parameter of a statement. Build with the functions below; arrays and text are
 * borrowed until the call that uses them returns. */
struct pg_param {
    enum { PG_NULL, PG_INT8, PG_TEXT, PG_ROLE_TEXT, PG_INT8_ARRAY, PG_TID_ARRAY } type;

    int64_t int8;
    const char *text;
    const int64_t *array;
    const struct pg_tid *tids;
    size_t n;
};

struct pg_param pg_null(void);
struct pg_param pg_int8(int64_t value); /* or a timestamptz, as pg_get_times has it */
struct pg_param pg_text(const char *text); /* NULL becomes SQL null */
struct pg_param pg_role_text(
    const char *text); /* a text of this program that names roles, with its prefix */
struct pg_param pg_int8_array(const int64_t *values, size_t n);
struct pg_param pg_tid_array(const struct pg_tid *values, size_t n);

/* Runs a statement of sql/queries, prepared at its first use on this connection (not
 * with transaction_pooling). With res != NULL the rows are handed over (free with
 * pg_result_free); *res is NULL on error. Errors: by SQLSTATE class (ERR_CONFLICT,
 * ERR_CONSTRAINT, ERR_TIMEOUT, ERR_DENIED, ERR_SCHEMA, ERR_BUG); ERR_CONN and a
 * client-side ERR_TIMEOUT leave the connection broken and the effect of the statement
 * unknown. */
MUST_CHECK int pg_exec(struct pg *pg,
                       const struct sql_text *sql,
                       const struct pg_param *params,
                       size_t n,
                       struct pg_result **res,
                       struct err *e);

/* The same for a statement that returns one number. */
MUST_CHECK int pg_ask(struct pg *pg,
                      const struct sql_text *sql,
                      const struct pg_param *params,
                      size_t n,
                      int64_t *answer,
                      struct err *e);

/* Prepares a statement without running it, so that a typo or a missing table is found
 * at start. */
MUST_CHECK int pg_prepare(struct pg *pg, const struct sql_text *sql, struct err *e);

/* Runs text that may hold several statements (migrations, audit files); rows of the
 * last one are handed over in text format if res is not NULL. */
MUST_CHECK int
pg_exec_text(struct pg *pg, const char *text, struct pg_result **res, struct err *e);

/* Asks the server to end the statement that another thread runs on this connection: it
 * fails then. Accepts NULL. Without a statement nothing happens. */
void pg_cancel(struct pg *pg);

/* Transactions. pg_commit returns ERR_UNKNOWN when COMMIT was sent and no answer came.
 */
MUST_CHECK int pg_begin(struct pg *pg, struct err *e);
MUST_CHECK int pg_begin_repeatable(struct pg *pg, struct err *e); /* repeatable read */
MUST_CHECK int pg_begin_snapshot(struct pg *pg,
                                 struct err *e); /* repeatable read, read only */
/* The same, in the snapshot of another connection, by PostgreSQL's name for it. */
MUST_CHECK int pg_begin_snapshot_of(struct pg *pg, const char *name, struct err *e);
MUST_CHECK int pg_commit(struct pg *pg, struct err *e);
/* A savepoint; pg_release keeps what came after it, pg_rollback_to undoes that. Either
 * ends it. */
MUST_CHECK int pg_savepoint(struct pg *pg, struct err *e);
MUST_CHECK int pg_release(struct pg *pg, struct err *e);
MUST_CHECK int pg_rollback_to(struct pg *pg, struct err *e);
void pg_rollback(
    struct pg *pg); /* best effort; a broken connection rolls back by itself */

/* Rows. Values are views into the result and live until pg_result_free. Integers are
 * read from int2, int4, int8 or bool columns; text from any column that is text. Null
 * reads as 0 or "". */
size_t pg_rows(const struct pg_result *res);
size_t pg_columns(const struct pg_result *res);
bool pg_is_null(const struct pg_result *res, size_t row, size_t column);
int64_t pg_get_int8(const struct pg_result *res, size_t row, size_t column);
const char *pg_get_text(const struct pg_result *res, size_t row, size_t column);
const char *pg_column_name(const struct pg_result *res, size_t column);
bool pg_is_number(const struct pg_result *res, size_t column); /* int2, int4 or int8 */
void pg_result_free(struct pg_result *res);

/* An array of int8 or tid in a row of a statement of sql/queries, a view as well: a
 * thousand values in one row cost a fraction of what a thousand rows do. Null reads as
 * empty, and so does anything but one dimension without null elements. */
struct pg_array {
    size_t n;
    const unsigned char *items; /* in the form of the wire */
};

struct pg_array pg_get_int8s(const struct pg_result *res, size_t row, size_t column);
struct pg_array pg_get_tids(const struct pg_result *res, size_t row, size_t column);

/* Of timestamptz: microseconds since 2000, INT64_MIN is -infinity. */
struct pg_array pg_get_times(const struct pg_result *res, size_t row, size_t column);

/* An element of an array of that type, or of times; 0 or no place beyond its end. */
int64_t pg_int8_at(const struct pg_array *array, size_t i);
struct pg_tid pg_tid_at(const struct pg_array *array, size_t i);

/* Process id of the backend. */
int pg_backend_pid(const struct pg *pg);

/* Server of the connection: a host or the folder of a Unix socket, and the port. */
const char *pg_host(const struct pg *pg);

/* The schema of the options. */
const char *pg_schema(const struct pg *pg);
const char *pg_port(const struct pg *pg);

#endif

/* pg: the only includer of libpq. One connection, prepared statements by id, binary
 * parameters and results, a client-side deadline on every answer.
 *
 * Every statement is a file in sql/queries; its stem is its id, its prepared name and
 * its name in logs. A connection on which an answer was late or lost is broken: close
 * it and open a new one; nothing else is done with it. */
#ifndef LEDGERLOCK_PG_H
#define LEDGERLOCK_PG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "sql_gen.h"

struct pg;
struct pg_result;

/* How to connect. All strings are borrowed during pg_open only. */
struct pg_options {
    const char *url;           /* libpq connection string or URL */
    const char *password_file; /* first line is the password; NULL: none */
    const char *name;          /* application_name */
    int64_t answer_ms;         /* longest wait for any one answer; > 0 */
    int64_t statement_ms;      /* statement_timeout of the session; 0: the server's */
    int64_t lock_ms;           /* lock_timeout; 0: the server's */
    int64_t idle_ms; /* idle_in_transaction_session_timeout; 0: the server's */
    bool plans_once; /* each statement is planned once for all values, by index where
                        one will do: the plan is kept when the tables have grown. No
                        index-only scan: it copies all that matches on a page to return
                        one entry */
    bool transaction_pooling; /* a pooler gives us another session for every
                                 transaction: nothing is left in one */
};

/* Opens a connection, sets UTC, the timeouts and how to plan: for the session, or with
 * transaction_pooling for every transaction, in one round trip with its BEGIN; a
 * statement outside a transaction then runs with the server's own settings. On failure
 * *out is NULL; ERR_CONN, ERR_TIMEOUT, ERR_DENIED (password, missing database),
 * ERR_CONFIG (a pooler of transactions that the options do not know of) with a sentence
 * that says what to do. Caller closes with pg_close. */
MUST_CHECK int
pg_open(struct pg **out, const struct pg_options *options, struct err *e);

/* Closes and frees; accepts NULL. Never waits. */
void pg_close(struct pg *pg);

/* Whether the connection may still be used. */
bool pg_is_usable(const struct pg *pg);

/* Where a row's version stands in its table (ctid): true until the row is written. */
struct pg_tid {
    uint32_t block;
    uint16_t offset; /* 0: nowhere */
};

/* One parameter of a statement. Build with the functions below; arrays and text are
 * borrowed until the call that uses them returns. */
struct pg_param {
    enum { PG_NULL, PG_INT8, PG_TEXT, PG_INT8_ARRAY, PG_TID_ARRAY } type;

    int64_t int8;
    const char *text;
    const int64_t *array;
    const struct pg_tid *tids;
    size_t n;
};

struct pg_param pg_null(void);
struct pg_param pg_int8(int64_t value);
struct pg_param pg_text(const char *text); /* NULL becomes SQL null */
struct pg_param pg_int8_array(const int64_t *values, size_t n);
struct pg_param pg_tid_array(const struct pg_tid *values, size_t n);

/* Runs a statement of sql/queries, prepared at its first use on this connection (not
 * with transaction_pooling). With res != NULL the rows are handed over (free with
 * pg_result_free); *res is NULL on error. Errors: by SQLSTATE class (ERR_CONFLICT,
 * ERR_CONSTRAINT, ERR_TIMEOUT, ERR_DENIED, ERR_SCHEMA, ERR_BUG); ERR_CONN and a
 * client-side ERR_TIMEOUT leave the connection broken and the effect of the statement
 * unknown. */
MUST_CHECK int pg_exec(struct pg *pg,
                       enum sql_id id,
                       const struct pg_param *params,
                       size_t n,
                       struct pg_result **res,
                       struct err *e);

/* Prepares a statement without running it, so that a typo or a missing table is found
 * at start. */
MUST_CHECK int pg_prepare(struct pg *pg, enum sql_id id, struct err *e);

/* Runs text that may hold several statements (migrations, audit files); rows of the
 * last one are handed over in text format if res is not NULL. */
MUST_CHECK int
pg_exec_text(struct pg *pg, const char *text, struct pg_result **res, struct err *e);

/* Statements on several connections at once. The pg_send functions start one and return
 * before its answer; parameters are borrowed until then. pg_wait_any sleeps until the
 * answer of one is there, or it is late or its connection lost, and returns its place;
 * those that were sent nothing are passed over, but one must have been. pg_take then
 * hands the answer over, or tells what became of it, as pg_exec does, and waits if it
 * is not there yet. Until then nothing else is done with the connection but pg_close.
 */
MUST_CHECK int pg_send(struct pg *pg,
                       enum sql_id id,
                       const struct pg_param *params,
                       size_t n,
                       struct err *e);
MUST_CHECK int pg_send_text(struct pg *pg, const char *text, struct err *e);
size_t pg_wait_any(struct pg *const *pgs, size_t n);
MUST_CHECK int pg_take(struct pg *pg, struct pg_result **res, struct err *e);

enum { PG_MOST_AT_ONCE = 64 }; /* connections that pg_wait_any takes */

/* Sends the begin of a pg_begin_snapshot that sees what another connection's
 * transaction sees, by the name that pg_export_snapshot() gave it there; that one must
 * still be in its transaction. */
MUST_CHECK int pg_send_begin_shared(struct pg *pg, const char *snapshot, struct err *e);

/* Transactions. pg_commit returns ERR_UNKNOWN when COMMIT was sent and no answer came.
 */
MUST_CHECK int pg_begin(struct pg *pg, struct err *e);
MUST_CHECK int pg_begin_snapshot(struct pg *pg,
                                 struct err *e); /* repeatable read, read only */
MUST_CHECK int pg_commit(struct pg *pg, struct err *e);
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
void pg_result_free(struct pg_result *res);

/* An array of int8 or tid in a row of a statement of sql/queries, a view as well: a
 * thousand values in one row cost a fraction of what a thousand rows do. Null reads as
 * empty, and so does anything but one dimension without null elements. */
struct pg_array {
    size_t n;
    const unsigned char *items; /* as they came over the wire */
};

struct pg_array pg_get_int8s(const struct pg_result *res, size_t row, size_t column);
struct pg_array pg_get_tids(const struct pg_result *res, size_t row, size_t column);

/* An element of an array of that type; 0 or nowhere beyond its end. */
int64_t pg_int8_at(const struct pg_array *array, size_t i);
struct pg_tid pg_tid_at(const struct pg_array *array, size_t i);

/* Notifications of the channels that this connection listens to. pg_socket is readable
 * when something came; pg_take_notified reads it without waiting and says whether a
 * notification was among it. Both only between statements. */
int pg_socket(const struct pg *pg);
MUST_CHECK int pg_take_notified(struct pg *pg, bool *notified, struct err *e);

/* COPY ... FROM STDIN, text format: begin, put any number of chunks, end. pg_copy_end
 * with a reason cancels. All of it belongs to the transaction around it. */
MUST_CHECK int pg_copy_begin(struct pg *pg, enum sql_id id, struct err *e);
MUST_CHECK int pg_copy_put(struct pg *pg, const char *data, size_t n, struct err *e);
MUST_CHECK int pg_copy_end(struct pg *pg, const char *cancel_reason, struct err *e);

/* Server version as 150004; process id of the backend. */
int pg_server_version(const struct pg *pg);
int pg_backend_pid(const struct pg *pg);

/* Where the connection leads: a host, or the folder of a Unix socket; and the port. */
const char *pg_host(const struct pg *pg);
const char *pg_port(const struct pg *pg);

#endif

/* json: result rows as JSON, for the verbs that print both JSON and text. */
#ifndef LEDGERLOCK_JSON_H
#define LEDGERLOCK_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"
#include "common/pg/pg.h"

/* Stores value under key and takes ownership of it, also on error. A NULL value means
 * that its creation failed: ERR_NOMEM. */
MUST_CHECK int doc_put(json_t *object, const char *key, json_t *value, struct err *e);

/* Appends value to the array and takes ownership of it, also on error. */
MUST_CHECK int doc_append(json_t *array, json_t *value, struct err *e);

/* One row as an object, in the order of its columns, whose names are the keys: without
 * those before `first` and those that are null. NULL when out of memory. */
json_t *doc_row(const struct pg_result *res, size_t row, size_t first);

/* Appends the rows of a statement to the array under key, which is made first. */
MUST_CHECK int doc_rows(json_t *doc,
                        const char *key,
                        struct pg *pg,
                        const struct sql_text *sql,
                        const struct pg_param *params,
                        size_t n,
                        struct err *e);

/* Stores the first row of a statement under key; nothing if it returns none. */
MUST_CHECK int doc_first(json_t *doc,
                         const char *key,
                         struct pg *pg,
                         const struct sql_text *sql,
                         const struct pg_param *params,
                         size_t n,
                         struct err *e);

/* Stores {"due", "oldest_due_ms", "future", "parked"} of each job, by its name, under
 * "jobs"; now may be NULL: the database's clock. */
MUST_CHECK int doc_jobs(json_t *doc, struct pg *pg, const char *now, struct err *e);

/* The JSON object that a statement returns as text, or JSON's null for null; the caller
 * owns it. NULL with an error. */
MUST_CHECK int doc_read(json_t **out,
                        struct pg *pg,
                        const struct sql_text *sql,
                        const struct pg_param *params,
                        size_t n,
                        struct err *e);

/* `n` columns from `first` on as an object. The columns are sums as text, since they
 * may exceed 64 bits; each becomes an integer if it fits, else a text of digits. NULL
 * when out of memory. */
json_t *doc_sums(const struct pg_result *res, size_t row, size_t first, size_t n);

/* Rows of (name, count) as one object. NULL when out of memory. */
json_t *doc_pairs(const struct pg_result *res);

/* Integer under a key; 0 if there is none. */
long long doc_int(const json_t *doc, const char *key);

/* A sum under a key, which may be text or integer, as digits; "0" if there is none.
 * Text is borrowed from doc, an integer is written into buf. */
const char *doc_digits(const json_t *doc, const char *key, char *buf, size_t size);

/* A text as a value: up to where it is no UTF-8, as when a character at its end was cut
 * in two. NULL when out of memory. */
json_t *doc_string(const char *text);

/* Text under a key; "" if there is none. */
const char *doc_text(const json_t *doc, const char *key);

/* Ends the progress, and prints the document as JSON, or for a person as `print` does.
 */
void doc_show(const json_t *doc, bool as_json, void (*print)(const json_t *doc));

/* Prints the document on stdout. */
void doc_print(const json_t *doc);

#endif

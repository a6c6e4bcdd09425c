/* json: result rows as JSON, for the verbs that print both JSON and text. */
#ifndef LEDGERLOCK_JSON_H
#define LEDGERLOCK_JSON_H

#include <jansson.h>
#include <stddef.h>

#include "common/base/err.h"
#include "common/pg/pg.h"

/* Stores value under key and takes ownership of it, also on error. A NULL value means
 * that its creation failed: ERR_NOMEM. */
MUST_CHECK int doc_put(json_t *object, const char *key, json_t *value, struct err *e);

/* Appends value to the array and takes ownership of it, also on error. */
MUST_CHECK int doc_append(json_t *array, json_t *value, struct err *e);

/* One row as an object, in the order of its columns: those before `first` are left out,
 * the next `text_ct` are text, the rest integers. NULL when out of memory. */
json_t *
doc_object(const struct pg_result *res, size_t row, size_t first, size_t text_ct);

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

/* Prints the document on stdout. */
void doc_print(const json_t *doc);

#endif

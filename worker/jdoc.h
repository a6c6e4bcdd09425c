/* jdoc: result rows as JSON, for the verbs that print both JSON and text. */
#ifndef LEDGERLOCK_JDOC_H
#define LEDGERLOCK_JDOC_H

#include <jansson.h>
#include <stddef.h>

#include "common/err.h"
#include "common/pg.h"

/* Puts value under key and takes it over, also when it fails. NULL for a value means
 * that making it failed: ERR_NOMEM. */
MUST_CHECK int jdoc_put(json_t *object, const char *key, json_t *value, struct err *e);

/* Appends value to the array and takes it over, likewise. */
MUST_CHECK int jdoc_append(json_t *array, json_t *value, struct err *e);

/* One row as an object, in the order of its columns: those before `first` are left out,
 * the next `text_ct` are text, the rest integers. NULL when out of memory. */
json_t *
jdoc_object(const struct pg_result *res, size_t row, size_t first, size_t text_ct);

/* `n` columns from `first` on as an object: sums that come as text, since 64 bits may
 * not hold them. Integers, but a text of digits where they do not. NULL when out of
 * memory. */
json_t *jdoc_sums(const struct pg_result *res, size_t row, size_t first, size_t n);

/* Rows of (name, count) as one object. NULL when out of memory. */
json_t *jdoc_pairs(const struct pg_result *res);

/* Integer under a key; 0 where there is none. */
long long jdoc_int(const json_t *doc, const char *key);

/* A sum under a key, whichever way it stands there, as digits; "0" where there is none.
 * A text is borrowed from doc, an integer written into buf. */
const char *jdoc_digits(const json_t *doc, const char *key, char *buf, size_t size);

/* Text under a key; "" where there is none. */
const char *jdoc_text(const json_t *doc, const char *key);

#endif

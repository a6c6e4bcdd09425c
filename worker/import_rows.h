/* import_rows: writes rows of COPY's text format through a buffer, for import and seed.
 * Field by field, then rows_end; the first error stays and the rest does nothing, so
 * callers look once, at the end. */
#ifndef LEDGERLOCK_IMPORT_ROWS_H
#define LEDGERLOCK_IMPORT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/pg.h"

enum { ROWS_BUFFER = 65536 };

struct rows {
    struct pg *pg;
    struct err *e;
    bool is_first; /* of its row */
    size_t len;
    char buf[ROWS_BUFFER];
};

/* Starts COPY with a statement of sql/queries. */
MUST_CHECK int rows_begin(struct rows *r, struct pg *pg, enum sql_id id, struct err *e);

void rows_text(struct rows *r, const char *text);
void rows_bytes(struct rows *r, const char *text, size_t n); /* without NUL */
void rows_int8(struct rows *r, int64_t value);
void rows_instant(struct rows *r, int64_t us);
void rows_null(struct rows *r);
void rows_end(struct rows *r);

/* Sends what is left and ends COPY; ends it too, with an error, when one happened
 * before or is in e. */
MUST_CHECK int rows_finish(struct rows *r);

#endif

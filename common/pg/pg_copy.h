/* pg_copy: rows through COPY ... FROM STDIN. Field by field, then pg_copy_end_row;
 * after the first error the other calls do nothing, so callers check once, at the end.
 * All rows belong to the transaction around the COPY. */
#ifndef LEDGERLOCK_PG_COPY_H
#define LEDGERLOCK_PG_COPY_H

#include "common/pg/pg.h"

enum { PG_COPY_BUFFER = 65536 };

struct pg_copy {
    struct pg *pg;
    struct err *e;
    bool is_first; /* field of its row */
    size_t len;
    char buf[PG_COPY_BUFFER];
};

/* Starts COPY with a statement of sql/queries. */
MUST_CHECK int pg_copy_begin(struct pg_copy *c,
                             struct pg *pg,
                             const struct sql_text *sql,
                             struct err *e);

/* A field is null, an int8 or text; bytes are text that does not end with NUL. */
void pg_copy_field(struct pg_copy *c, struct pg_param field);
void pg_copy_bytes(struct pg_copy *c, const char *text, size_t n);
void pg_copy_end_row(struct pg_copy *c);

/* Sends the rest of the buffer and ends COPY; if an error happened before or is in e,
 * COPY is ended with that error. */
MUST_CHECK int pg_copy_finish(struct pg_copy *c);

#endif

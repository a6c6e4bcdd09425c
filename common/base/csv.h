/* csv: a reader of RFC 4180 files in bounded memory. Fields may be quoted, quotes
 * doubled; line ends are LF or CRLF and may be inside quotes. A byte order mark and
 * empty lines are skipped. A malformed record is returned with its fault, not
 * repaired. */
#ifndef LEDGERLOCK_CSV_H
#define LEDGERLOCK_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

enum { CSV_FIELDS_MAX = 32, CSV_RECORD_MAX = 65536 };

struct csv;

/* One record. Views into the reader, good until the next call on it. */
struct csv_record {
    size_t line; /* number of its first line in the file, from 1 */
    const char
        *raw; /* its bytes without the line end; may hold anything when fault is set */
    size_t raw_len;
    const char
        *fault; /* NULL, or why its fields cannot be used: NUL, not UTF-8, quotes */
    size_t field_ct;                    /* may exceed CSV_FIELDS_MAX */
    const char *fields[CSV_FIELDS_MAX]; /* unquoted, NUL-ended, valid UTF-8 */
};

/* Opens a file; ERR_INVALID with the reason when it cannot be read. */
MUST_CHECK int csv_open(struct csv **out, const char *path, struct err *e);

/* Next record; *more is false at the end of the file. A faulty record is its first
 * line only, and the next record begins with the line after it: one open quote does not
 * swallow the file. If the line is longer than CSV_RECORD_MAX, raw is its beginning. */
MUST_CHECK int
csv_next(struct csv *csv, struct csv_record *record, bool *more, struct err *e);

/* Accepts NULL. */
void csv_close(struct csv *csv);

#endif

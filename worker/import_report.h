/* import_report: bad lines: counted, the first ones told on stderr, all of them kept
 * for the rejects file when one is wanted. */
#ifndef LEDGERLOCK_IMPORT_REPORT_H
#define LEDGERLOCK_IMPORT_REPORT_H

#include <stddef.h>
#include <stdio.h>

#include "common/err.h"

enum { IMPORT_TOLD_MAX = 20 };

/* Zeroed, then opened. */
struct import_report {
    const char *rejects_path; /* borrowed; NULL: none wanted */
    char *target;             /* where it stands, links followed; owned */
    char *written; /* name beside it, from _write to _publish; NULL: none; owned */
    FILE *kept;    /* nameless file: nothing is left behind by an interruption */
    const char *section; /* file whose header was written last */
    size_t bad_ct;
};

/* Opens nothing for writing that has a name. */
MUST_CHECK int
import_report_open(struct import_report *r, const char *rejects_path, struct err *e);

/* One bad line of a file. header is the file's header line, raw the line as it stands
 * in the file; it is written to the rejects file with the reason as one more column. */
void import_report_bad(struct import_report *r,
                       const char *path,
                       const char *header,
                       size_t line,
                       const char *reason,
                       const char *raw,
                       size_t raw_len);

/* "and 123 more bad lines" if not all were told. */
void import_report_end(const struct import_report *r);

/* Before COMMIT: writes the rejects, none when no line was bad, under another name
 * beside the rejects file; what is no regular file (a pipe, a terminal) gets them at
 * once. */
MUST_CHECK int import_report_write(struct import_report *r, struct err *e);

/* After COMMIT: gives the rejects their name. */
MUST_CHECK int import_report_publish(struct import_report *r, struct err *e);

/* Removes what was written and not published. Accepts a half-built one. */
void import_report_close(struct import_report *r);

#endif

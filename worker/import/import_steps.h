/* import_steps: the steps of an import inside its transaction: from files to staging
 * tables, from these to the real tables, and bad lines to stderr and the rejects file.
 */
#ifndef LEDGERLOCK_IMPORT_STEPS_H
#define LEDGERLOCK_IMPORT_STEPS_H

#include <stdint.h>

#include "common/base/replace.h"
#include "common/pg/pg.h"
#include "worker/import/import_line.h"

/* Zeroed; `rejects` is opened when a file is wanted. */
struct import_report {
    struct replace rejects;
    const char *section; /* file whose header was written last */
    size_t bad_ct;
};

/* Reports one bad line. header is the header line of the file, raw the line itself; it
 * is written to the rejects file with the reason as one more column. */
void import_report_bad(struct import_report *r,
                       const char *path,
                       const char *header,
                       size_t line,
                       const char *reason,
                       const char *raw,
                       size_t raw_len);

/* Prints "and 123 more bad lines" if not all were printed. */
void import_report_end(const struct import_report *r);

/* The outcome of an import. */
struct import_counts {
    int64_t stock_new, stock_same, stock_units;
    int64_t subscriptions_new, subscriptions_same;
    int64_t orders_new, orders_same, orders_rejected; /* rejected are among the new */
    int64_t lines, units, amount_minor;               /* of new orders not rejected */
    int64_t users_new;
};

/* One import. Text is borrowed, except the header lines. */
struct import {
    struct pg *pg;
    const char *currency;
    const char *files[IMPORT_KINDS]; /* NULL: no file of this kind */
    char *headers[IMPORT_KINDS];     /* the header lines of the files; owned */
    int64_t deposit_minor;           /* for each new user */
    const char *now;                 /* for PostgreSQL; NULL: its clock */
    struct import_report report;
    struct import_counts counts;
};

/* Reads a file, if there is one of this kind, into its staging table through COPY in
 * bounded memory; bad lines go to the report. ERR_INVALID when the file cannot be read
 * or its header is wrong. */
MUST_CHECK int import_stage(struct import *im, enum import_kind_id id, struct err *e);

/* Checks the staged lines against the real tables, reports the bad ones, and creates
 * users, SKUs, subscriptions and orders from the others. */
MUST_CHECK int import_store(struct import *im, struct err *e);

#endif

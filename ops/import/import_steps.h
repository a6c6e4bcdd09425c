/* import_steps: the steps of an import inside its transaction: from files to staging
 * tables (import_steps.c), from these to the real tables (import_store.c), and bad
 * lines to stderr and the rejects file. */
#ifndef LEDGERLOCK_IMPORT_STEPS_H
#define LEDGERLOCK_IMPORT_STEPS_H

#include <stdint.h>

#include "common/base/replace.h"
#include "common/pg/pg.h"
#include "ops/import/import_line.h"

/* The numbers that the statements of an import return. ALL counts new rows and those
 * that were there. Rejected orders count as new; their lines, units and amounts do not
 * count. */
enum import_count {
    IMPORT_STOCK_NEW,
    IMPORT_STOCK_ALL,
    IMPORT_STOCK_UNITS,
    IMPORT_SUBSCRIPTIONS_NEW,
    IMPORT_SUBSCRIPTIONS_ALL,
    IMPORT_ORDERS_NEW,
    IMPORT_ORDERS_REJECTED,
    IMPORT_ORDERS_SAME,
    IMPORT_LINES,
    IMPORT_UNITS,
    IMPORT_AMOUNT,
    IMPORT_USERS_NEW,
    IMPORT_NOTHING,
    IMPORT_COUNTS
};

enum { IMPORT_TOLD_MAX = 20 }; /* bad lines that are printed */

/* One import. Text is borrowed, except the header lines. */
struct import {
    struct pg *pg;
    const char *currency;
    const char *files[IMPORT_KINDS]; /* NULL: no file of this kind */
    char *headers[IMPORT_KINDS];     /* the header lines of the files; owned */
    int64_t deposit_minor;           /* for each new user */
    const char *now;                 /* for PostgreSQL; NULL: its clock */
    struct replace rejects;          /* opened when a file is wanted */
    const char *section;             /* of it: the file whose header stands last */
    size_t bad_ct;
    size_t refused_ct; /* items that the database refused by an error */
    int64_t counts[IMPORT_COUNTS];
};

/* Reads a file, if there is one of this kind, into its staging table through COPY in
 * bounded memory; bad lines go to the report. ERR_INVALID when the file cannot be read
 * or its header is wrong. */
MUST_CHECK int import_stage(struct import *im, enum import_kind_id id, struct err *e);

/* A bad line: the first are told on stderr, all are put aside with the reason as one
 * more column. raw is the line itself. */
void import_report(struct import *im,
                   enum import_kind_id id,
                   size_t line,
                   const char *reason,
                   const char *raw,
                   size_t raw_len);

/* Checks the staged lines against the real tables, reports the bad ones, and creates
 * users, SKUs, subscriptions and orders from the others. A line over which PostgreSQL
 * reports an error is a bad one, too. */
MUST_CHECK int import_store(struct import *im, struct err *e);

#endif

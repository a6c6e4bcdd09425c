/* import_steps: the two halves of an import inside its transaction: files into staging
 * tables, staging tables into the real ones. */
#ifndef LEDGERLOCK_IMPORT_STEPS_H
#define LEDGERLOCK_IMPORT_STEPS_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/pg.h"
#include "worker/import_line.h"
#include "worker/import_report.h"

/* What an import did. */
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
    const char *files[IMPORT_KINDS]; /* NULL: none of this kind */
    char *headers[IMPORT_KINDS]; /* header lines as they stand in the files; owned */
    int64_t deposit_minor;       /* for each new user */
    const char *now;             /* for PostgreSQL; NULL: its clock */
    struct import_report report;
    struct import_counts counts;
};

/* Reads a file, if there is one of this kind, into its staging table through COPY in
 * bounded memory; bad lines go to the report. ERR_INVALID when the file cannot be read
 * or its header is wrong. */
MUST_CHECK int import_stage(struct import *im, enum import_kind_id id, struct err *e);

/* Judges the staged lines against what is there, reports the bad ones, and makes users,
 * SKUs, subscriptions and orders of the others. */
MUST_CHECK int import_store(struct import *im, struct err *e);

#endif

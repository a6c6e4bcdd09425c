/* import_line: the columns of each kind of file, and the check of one record.
 * Independent of the database. */
#ifndef LEDGERLOCK_IMPORT_LINE_H
#define LEDGERLOCK_IMPORT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/csv.h"
#include "common/base/err.h"

enum { IMPORT_COLUMNS_MAX = 8, IMPORT_REF_MAX = 255 };

enum import_type {
    IMPORT_REF,   /* text, 1 to 255 bytes, not blank */
    IMPORT_COUNT, /* whole number within bounds */
    IMPORT_MONEY, /* amount of the import's currency, in minor units within bounds */
    IMPORT_TIMESTAMP, /* see timestamp_parse */
    IMPORT_UNIT,      /* day, week, month, year */
};

struct import_column {
    const char *name;
    enum import_type type;
    int64_t min, max; /* COUNT, MONEY */
};

/* One kind of file. */
struct import_kind {
    const char *name; /* orders, subscriptions, stock */
    const struct import_column *columns;
    size_t column_ct;
    int amount_of[2]; /* two columns whose product must stay below 10^15; -1: none */
};

enum import_kind_id { IMPORT_STOCK, IMPORT_SUBSCRIPTIONS, IMPORT_ORDERS, IMPORT_KINDS };

extern const struct import_kind import_kinds[IMPORT_KINDS];

/* The place of each column in the file. The header names them in any order; last
 * columns named "rejected", as in rejects files, are ignored. */
struct import_header {
    size_t field_ct;
    size_t field_of[IMPORT_COLUMNS_MAX];
};

/* ERR_INVALID with the name of a missing or unknown column. */
MUST_CHECK int import_header_read(const struct import_kind *kind,
                                  const struct csv_record *record,
                                  struct import_header *header,
                                  struct err *e);

/* A checked line: text of REF and UNIT (views into the record), number of the others.
 */
struct import_line {
    const char *text[IMPORT_COLUMNS_MAX];
    int64_t number[IMPORT_COLUMNS_MAX];
};

/* True if the record is a good line; else reason says why. */
bool import_line_read(const struct import_kind *kind,
                      const struct import_header *header,
                      const struct csv_record *record,
                      const char *currency,
                      struct import_line *line,
                      char *reason,
                      size_t reason_size);

#endif

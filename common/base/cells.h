/* cells: several databases, or schemas of a Citus cluster, that are worked as one. A
 * cell has a number, a schema, and lock keys of its own. Its ids begin at the number *
 * 2^40 + 1, so an id says its cell.
 */
#ifndef LEDGERLOCK_CELLS_H
#define LEDGERLOCK_CELLS_H

#include "common/base/config.h"

enum { CELLS_MAX = 128, CELL_MOST = 8191 };

struct cell {
    int64_t number;
    char url[CONFIG_TEXT]; /* of its database, as postgres.url; of the coordinator */
};

/* Of cells.urls, or of those that were found in cells.citus, the ones that cells.only
 * names, in the order of their numbers. */
struct cells {
    size_t n; /* 0: both are empty, and there is the database of postgres.url alone */
    struct cell of[CELLS_MAX];
};

/* Reads both settings. ERR_CONFIG, or ERR_INVALID if a flag gave the value, for a
 * number that is no cell's, comes twice or is in no list, and for a locks.prefix that
 * has a hash tag of its own. */
MUST_CHECK int cells_read(const struct config *c, struct cells *out, struct err *e);

/* True if it is one of them. */
bool cells_have(const struct cells *cells, int64_t number);

/* The settings of a cell: its database or schema, and lock keys of one hash tag. */
void cells_enter(const struct config *c, const struct cell *cell, struct config *of);

/* Narrows the settings to the one cell that cells.only names; ERR_INVALID where there
 * are several. Nothing without cells. */
MUST_CHECK int cells_enter_one(struct config *c, struct err *e);

#endif

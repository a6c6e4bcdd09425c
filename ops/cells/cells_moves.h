/* cells_moves: units of a SKU that moved from one cell to another, in two entries of
 * stock under one key: what left the one, and what came to the other. */
#ifndef LEDGERLOCK_CELLS_MOVES_H
#define LEDGERLOCK_CELLS_MOVES_H

#include <jansson.h>

#include "common/base/cells.h"
#include "common/pg/pg.h"

/* A move: the entry of one side, by the other cell, is that of the other, by this one.
 */
struct cell_move {
    const char *sku, *key;
    int64_t qty;
    int64_t from, to; /* numbers of cells */
};

/* Takes the units out of the one cell and puts them into the other, over a connection
 * to each: both entries are written, so that whatever one cell refuses moves nothing;
 * then the one that leaves is committed, then the one that comes. Again with the same
 * key it ends a move that was cut off, and moves nothing twice. left: on hand in both
 * cells afterwards. ERR_UNKNOWN: run it again. */
MUST_CHECK int cells_move(struct pg *from,
                          struct pg *to,
                          const struct cell_move *move,
                          int64_t left[2],
                          struct err *e);

/* Reads the moves of all cells and compares both sides. An
 * invariant as audit_gather has it; units on their way for less than lag_s break none.
 * *under_way: how many units left and have not come. Cells that are not in the list are
 * not asked, and moves with them not compared. */
MUST_CHECK int cells_compare_moves(const struct config *c,
                                   const struct cells *cells,
                                   int64_t lag_s,
                                   json_t **invariant,
                                   int64_t *under_way,
                                   struct err *e);

#endif

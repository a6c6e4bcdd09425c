/* cells_each: work of a verb in each cell, one after the other or at once. */
#ifndef LEDGERLOCK_CELLS_EACH_H
#define LEDGERLOCK_CELLS_EACH_H

#include <jansson.h>

#include "common/base/cells.h"

/* Runs the work with the settings of each cell, one after the other, behind "cell N: "
 * on stdout. Ends at the first error, which names the cell. */
MUST_CHECK int cells_each(const struct config *c,
                          int (*work)(const struct config *of_cell, struct err *e),
                          struct err *e);

/* A document about a cell; *doc is the caller's, NULL on error. */
typedef int cells_read_one(const struct config *of_cell, json_t **doc, struct err *e);

/* The answer of a cell. */
struct cell_answer {
    json_t *doc;  /* NULL: there is none, */
    struct err e; /* for this reason */
};

/* Asks all cells at once, each in a process of its own, so that the slowest decides how
 * long it takes, and a cell that does not answer keeps no other. `answers` has a place
 * for each; the caller frees their documents. */
void cells_gather(const struct config *c,
                  const struct cells *cells,
                  cells_read_one *read_one,
                  struct cell_answer *answers);

void cells_free(const struct cells *cells, struct cell_answer *answers);

#endif

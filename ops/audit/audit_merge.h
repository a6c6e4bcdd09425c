/* audit_merge: the audits of several cells as one, with what only all of them show. */
#ifndef LEDGERLOCK_AUDIT_MERGE_H
#define LEDGERLOCK_AUDIT_MERGE_H

#include "common/pg/pg.h"
#include "ops/cells/cells_each.h"

/* Puts into the audit of a cell how many of its rows have a number of another one. */
MUST_CHECK int audit_count_foreign(const struct config *of_cell,
                                   struct pg *pg,
                                   json_t *doc,
                                   struct err *e);

/* Audits all cells at once by `gather`, which makes the document of audit_gather. *out,
 * owned by the caller, has the form of one: an invariant holds if it holds in each
 * cell, and the rows that break it name the cell; totals are added up. Besides, "cells"
 * has the verdict and now of each, and "ids_are_of_their_cell" and "units_moved_arrive"
 * are invariants of all. An error of a cell is the error of the whole, and names the
 * cell. */
MUST_CHECK int audit_merge(const struct config *c,
                           const struct cells *cells,
                           cells_read_one *gather,
                           int64_t lag_s,
                           json_t **out,
                           struct err *e);

#endif

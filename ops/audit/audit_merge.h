/* audit_merge: the audits of several cells as one, with what only all of them show. */
#ifndef LEDGERLOCK_AUDIT_MERGE_H
#define LEDGERLOCK_AUDIT_MERGE_H

#include "ops/cells/cells_each.h"

/* Audits all cells at once by `gather`, which makes the document of audit_gather. *out,
 * owned by the caller, has the form of one: an invariant holds if it holds in each
 * cell, and the rows that break it name the cell; totals are added up. Besides, "cells"
 * has the verdict, now and lag of each, and "units_moved_arrive" is an invariant of
 * all. An error of a cell is the error of the whole, and names the cell. */
MUST_CHECK int audit_merge(const struct config *c,
                           const struct cells *cells,
                           cells_read_one *gather,
                           int64_t lag_s,
                           json_t **out,
                           struct err *e);

#endif

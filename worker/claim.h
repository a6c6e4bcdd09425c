/* claim: takes the rows of a batch for a token, inside its transaction. */
#ifndef LEDGERLOCK_CLAIM_H
#define LEDGERLOCK_CLAIM_H

#include <stdint.h>

#include "worker/worker.h"

/* Claims the row of every wanted key and marks those that were given. *xid is the id of
 * the transaction, 0 if no row was given. Errors: those of the statement. */
MUST_CHECK int claim_rows(struct worker *w, int64_t token, int64_t *xid, struct err *e);

/* After the transaction, outside of it: counts what was refused as busy or fenced, and
 * heals a fence above every token that can come: raises the epoch, or sets the rows
 * aside. Errors: those of the statements; ERR_REDIS. */
MUST_CHECK int claim_report(struct worker *w,
                            const struct job_type *job,
                            int64_t token,
                            struct err *e);

#endif

/* settle: finds out what became of a COMMIT whose answer was lost. */
#ifndef LEDGERLOCK_SETTLE_H
#define LEDGERLOCK_SETTLE_H

#include "worker/worker.h"

/* Notes the unknown COMMIT; the work of the batch counts only once it is settled. */
void settle_note(struct worker *w,
                 const struct job_batch *b,
                 const struct job_type *job,
                 int64_t xid,
                 const struct metrics *counted);

/* Settles it on a fresh connection: waits until the old transaction is over, then looks
 * for effects with the batch's token. Journals the result. Does nothing when nothing is
 * pending. Errors leave it pending. */
MUST_CHECK int settle_pending(struct worker *w, struct err *e);

#endif

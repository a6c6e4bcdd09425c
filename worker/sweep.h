/* sweep: batches from every bucket in which something is due. */
#ifndef LEDGERLOCK_SWEEP_H
#define LEDGERLOCK_SWEEP_H

#include "worker/look.h"
#include "worker/worker.h"

/* One batch from each due bucket of every job of the worker that it has not stepped
 * back from; less when it is told to stop. What it saw is added to `look`. */
MUST_CHECK int sweep(struct worker *w, struct look *look, struct err *e);

#endif

/* park: sets a row aside for a person. */
#ifndef LEDGERLOCK_PARK_H
#define LEDGERLOCK_PARK_H

#include <stdint.h>

#include "worker/worker.h"

/* The row is not pulled again until a person gives it back. Counted and journaled with
 * the reason. token 0: none was held. */
MUST_CHECK int park_item(struct worker *w,
                         const struct job_type *job,
                         int64_t item,
                         int64_t token,
                         const char *why,
                         struct err *e);

#endif

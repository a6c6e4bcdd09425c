/* queue: where batches meet over the same keys, the workers of a pool go one after the
 * other: each has pulled its batch by the time its turn comes, and is woken the moment
 * the keys are free, instead of asking for them in vain. It saves work and nothing
 * else: no lock, no promise depends on it. */
#ifndef LEDGERLOCK_QUEUE_H
#define LEDGERLOCK_QUEUE_H

#include <stdbool.h>

#include "worker/worker.h"

/* From here on the worker is about a batch of this job (row of the registry). If it is
 * to wait for its turn, that is until no other worker of the pool is about one; who has
 * waited longest goes first. It waits a second or a tenth of a lease at most, and for
 * none that has been at its batch for longer, since that one may stand still or be
 * dead. Returns whether it waited. */
bool queue_enter(struct worker *w, int job, bool waits);

/* It is done with its batch, and the one that has waited longest goes next. Does
 * nothing if it is about none. */
void queue_leave(struct worker *w);

#endif

/* queue: where batches meet over the same keys, the workers of a pool go one after the
 * other: each has pulled its batch by the time its turn comes, and is woken the moment
 * the keys are free, instead of asking for them in vain. It saves work and nothing
 * else: no lock, no promise depends on it. */
#ifndef LEDGERLOCK_QUEUE_H
#define LEDGERLOCK_QUEUE_H

#include <stdbool.h>

#include "worker/worker.h"

/* From here on the worker asks for the keys of a batch of this job (row of the
 * registry). If it is wary it first waits until no other worker of the pool is about
 * one, whoever has waited longest first; a tenth of a lease at most, since one of them
 * may stand still. Whether it waited. Once entered, this does nothing. */
bool queue_enter(struct worker *w, int job, bool wary);

/* It has given its keys back: the next one's turn. Not entered: nothing to do. */
void queue_leave(struct worker *w);

#endif

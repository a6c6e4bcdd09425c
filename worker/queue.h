/* queue: where batches meet over the same keys, the workers of a pool go one after the
 * other: each has pulled its batch by the time its turn comes, and is woken the moment
 * the keys are free, instead of asking for them in vain. Where every bucket has keys of
 * its own, they pass over those that others are in. It saves work and nothing else: no
 * lock, no promise depends on it. */
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

/* The same without waiting, for a batch that comes from these buckets alone, or, if it
 * is about one of the job already, from these as is known by now. */
void queue_go_to(struct worker *w, int job, const int64_t *buckets, size_t n);

/* Whether another worker of the pool is about a batch of the job from this bucket, and
 * not for so long that it may stand still or be dead. */
bool queue_is_at(const struct worker *w, int job, int64_t bucket);

/* It is done with its batch, and the one that has waited longest goes next. Does
 * nothing if it is about none. */
void queue_leave(struct worker *w);

#endif

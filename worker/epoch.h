/* epoch: makes tokens grow again after Redis lost, changed or rewound its record. */
#ifndef LEDGERLOCK_EPOCH_H
#define LEDGERLOCK_EPOCH_H

#include "worker/worker.h"

/* Commits a higher epoch in PostgreSQL and installs it in Redis; above `floor`, an
 * epoch seen in a fence (0: none). One worker of all does it, the others find it done.
 * ERR_REDIS, or what PostgreSQL said. */
MUST_CHECK int
epoch_raise(struct worker *w, int64_t floor, const char *why, struct err *e);

/* At the start of a worker: a Redis that is ahead of this database (it served another
 * one, or the database was restored) would hand out tokens that the database's epoch
 * knows nothing of. Raises the epoch above it. Redis being away is no error here. */
MUST_CHECK int epoch_catch_up(struct worker *w, struct err *e);

/* The token of a batch when no Redis lock is held (locks.mode database-only): the
 * highest of the epoch in force, so that rows written under locks do not refuse it. */
MUST_CHECK int
epoch_token_without_locks(struct worker *w, int64_t *token, struct err *e);

/* The epoch that a token or a fence was made in. */
int64_t epoch_of(int64_t token);

#endif

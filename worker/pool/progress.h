/* progress: when a pool last got on, as one of its workers sees it, and when a worker
 * of `run --once` is done. */
#ifndef LEDGERLOCK_POOL_PROGRESS_H
#define LEDGERLOCK_POOL_PROGRESS_H

#include "worker/batch/session.h"

enum { POOL_PROGRESS_LEFT = 500 };

struct pool_progress {
    long long commits; /* of the pool, when it last was seen to get on, */
    int64_t at_ms;     /* and when that was */
    int64_t due;       /* rows, while the worker stands by */
    long long fed;     /* commits of the pool, while other jobs may make rows due, */
    int64_t fed_ms;    /* and since when they are so many */
};

/* Notes when the pool last committed something, or had nothing to do (gets_on). */
void pool_progress_note(struct pool_progress *p, const struct session *s, bool gets_on);

/* How long ago that was. */
int64_t pool_progress_age_ms(const struct pool_progress *p);

/* Run --once, after a step: true when it is over, with the worker's exit code. The rows
 * that are busy are left when the whole pool has got nowhere for three leases; then
 * `left` says which and why. While other jobs of the pool may make rows of this one due
 * and get on, it is not over. */
bool pool_progress_is_done(struct pool_progress *p,
                           struct session *s,
                           char left[POOL_PROGRESS_LEFT],
                           enum exit_code *code);

#endif

/* turn: one batch from pull to release. */
#ifndef LEDGERLOCK_TURN_H
#define LEDGERLOCK_TURN_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/worker.h"

/* What became of it. */
enum turn {
    TURN_EMPTY,  /* nothing due there */
    TURN_BUSY,   /* something due, every row's key is with somebody else */
    TURN_WORKED, /* something was committed or settled; come again */
    TURN_STALE,  /* pulled before a death made suspects: turn_run pulls again itself */
};

/* Where to go and how much to take there. */
struct turn_order {
    const int64_t *buckets; /* one after the other, until there is enough */
    size_t bucket_ct;       /* one, if the job is in order */
    size_t limit;
    const struct walk_line *line; /* of the bucket: tells who is late there; or NULL */
    bool queues;  /* waits until no other worker is about a batch of the job */
    bool patient; /* all keys of the rows, waiting for them a little, or none */
    bool suspect; /* one row that a worker has died over, alone; else the others */
};

/* Pulls from the buckets, locks, applies in one transaction, releases. To leave the
 * queue is up to the caller: queue_leave, also after an error. Errors: ERR_REDIS
 * (nothing was charged), ERR_UNKNOWN (noted; settle_pending on a new connection),
 * ERR_CONN and ERR_TIMEOUT (rolled back by the server), ERR_CONFLICT (rolled back, try
 * again). */
MUST_CHECK int turn_run(struct worker *w,
                        const struct job_type *job,
                        const struct turn_order *order,
                        enum turn *turn,
                        struct err *e);

/* Releases the tenure; a loss noticed here is counted and journaled. Nothing to release
 * is fine. */
void turn_release(struct worker *w);

#endif

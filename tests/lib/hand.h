/* hand: a worker of the test's own, connected as the pool connects, led step by step.
 */
#ifndef LEDGERLOCK_HAND_H
#define LEDGERLOCK_HAND_H

#include "tests/lib/world.h"
#include "worker/connect.h"

/* Large: make it static, or one to a test. */
struct hand {
    struct config config;
    struct slot slot;
    struct worker w;
};

/* Opens both connections on the world as a worker with this lease; any error fails the
 * test. Caller closes with connect_close(&h->w). */
void hand_open(struct hand *h, int64_t lease_ms);

/* In one transaction, as a turn does: claims every user of items 1 to 5 (ids 64 times
 * theirs), applies the five, commits. Returns 0, or the error's code after a rollback.
 */
int hand_apply(struct hand *h,
               const struct job_type *job,
               int64_t token,
               const char *now,
               struct metrics *counted);

#endif

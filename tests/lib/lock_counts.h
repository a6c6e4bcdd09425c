/* lock_counts: how often a client exchanged commands and answers, and a renewer
 * renewed: the tests' link puts these counters before rlock_link_begin and rlock_keep.
 */
#ifndef LEDGERLOCK_LOCK_COUNTS_H
#define LEDGERLOCK_LOCK_COUNTS_H

#include "common/lock/renew.h"

/* Exchanges of a client so far, with all nodes at once; without the handshake of a new
 * connection. */
uint64_t lock_trips(const struct rlock_client *c);

/* Counts of a renewer so far: rounds, locks renewed in them, and, where it has no
 * thread, exchanges. A round under way is not counted yet. */
struct figures {
    uint64_t rounds, renewals, trips;
};

struct figures figures_of(struct rlock_renewer *r);

/* The renewer is a new one: all its counts are 0. */
void figures_begin(const struct rlock_renewer *r);

/* Waits until the renewer has renewed n times more. */
void await_renewals(struct rlock_renewer *r, uint64_t n);

#endif

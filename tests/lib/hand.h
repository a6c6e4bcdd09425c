/* hand: a worker of the test's own, connected as the pool connects, led step by step.
 */
#ifndef LEDGERLOCK_HAND_H
#define LEDGERLOCK_HAND_H

#include "tests/lib/world.h"
#include "worker/batch/session.h"

/* Large: make it static, or one to a test. */
struct hand {
    struct config config;
    struct counters counters;
    struct measures measures;
    struct inflight inflight;
    struct death_counts deaths;
    atomic_llong commits;
    struct session s;
};

/* Setup of cmocka: users 64, 128 ... 320 with a wallet of 10.00, and for each a due
 * subscription of 1.00 (1 to 5) and a pending order (1 to 5) of 0.10. */
void hand_world(void);

/* Charges captured, orders fulfilled, sum of the wallets, sum of the stock. */
extern const char hand_done[];

/* A pool works the database and the Redis once, for user 9. */
void hand_settle_in(void);

/* Opens both connections on the world as a worker with this lease; any error fails the
 * test. A HAND is closed at the end of its block, else it is the caller's. */
void hand_open(struct hand *h, int64_t lease_ms);
void hand_close(struct hand *h);
#define HAND struct hand OWNED(hand_close)

#endif

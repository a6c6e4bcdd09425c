/* locks: what the parts of the mode `locks` share. */
#ifndef LEDGERLOCK_BENCH_LOCKS_H
#define LEDGERLOCK_BENCH_LOCKS_H

#include <jansson.h>

#include "common/lock/lock.h"
#include "labs/bench/bare.h"
#include "labs/bench/bench.h"

enum { REPETITIONS_MAX = 99, LEASE_MS = 60000 };

struct lock_bench {
    const struct config *config;
    const struct bench_flags *flags;
    struct rlock_client *client;
    struct rlock *lock;
    struct bare *bare;
    char prefix[48];
    struct rlock_key keys[RLOCK_KEYS_MAX];
    char names[RLOCK_KEYS_MAX][16];
    json_t *out; /* the figures */
};

/* Adds a figure. */
void bench_figure(struct lock_bench *b, const char *figure, double value);

/* Median of n values; sorts them. */
double bench_median(double *values, size_t n);

/* Hand-overs among waiters; what idle ones write. */
MUST_CHECK int bench_waiters(struct lock_bench *b, struct err *e);

/* Round trips to connect; and with --quorum three servers against one, each behind the
 * same delay, and with one of them slow or stopped. */
MUST_CHECK int bench_network(struct lock_bench *b, struct err *e);

#endif

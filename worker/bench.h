/* bench: what the benchmark modes share. */
#ifndef LEDGERLOCK_BENCH_H
#define LEDGERLOCK_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/config.h"
#include "worker/cli.h"

/* Flags of the verb. */
struct bench_flags {
    int64_t seconds;     /* of each timed part */
    int64_t repetitions; /* medians are over these */
    const char *quorum;  /* three URLs: also measure a quorum */
    bool json;
};

/* Mode `locks`: the lock library beside plain hiredis, all in one run. Fills `doc`. */
MUST_CHECK int bench_locks(const struct config *c,
                           const struct bench_flags *f,
                           json_t *doc,
                           struct err *e);

/* Median of n values; sorts them. */
double bench_median(double *values, size_t n);

#endif

/* histogram: how many durations were how long. The counts lie in memory that other
 * processes read while their one writer adds, so a reader may see one value more or
 * less. */
#ifndef LEDGERLOCK_HISTOGRAM_H
#define LEDGERLOCK_HISTOGRAM_H

#include <stdint.h>

enum { HISTOGRAM_BOUNDS = 15 };

/* Upper bounds of the classes in microseconds, rising; each belongs to its class. */
extern const int64_t histogram_bounds_us[HISTOGRAM_BOUNDS];

struct histogram {
    int64_t counts[HISTOGRAM_BOUNDS + 1]; /* the last: above every bound */
    int64_t sum_us;
};

void histogram_add(struct histogram *h, int64_t us);

#endif

/* histogram: how often each length of time was measured, in a fixed piece of memory
 * that may be shared. Buckets grow with the value: each is at most an eighth as wide as
 * the values in it are large, from 1 us to more than an hour. */
#ifndef LEDGERLOCK_HISTOGRAM_H
#define LEDGERLOCK_HISTOGRAM_H

#include <stdint.h>

enum {
    HISTOGRAM_SUB = 8,     /* buckets of each power of two */
    HISTOGRAM_POWERS = 30, /* 2^32 us and more share the last bucket */
    HISTOGRAM_BUCKETS = HISTOGRAM_SUB * HISTOGRAM_POWERS
};

/* All zero is an empty one. One writer; a reader beside it sees whole numbers. */
struct histogram {
    int64_t count[HISTOGRAM_BUCKETS];
};

/* Counts one value; a negative one counts as 0. */
void histogram_record(struct histogram *h, int64_t us);

/* Adds `from` to `to`. */
void histogram_add(struct histogram *to, const struct histogram *from);

/* Number of values. */
int64_t histogram_count(const struct histogram *h);

/* The value that `share` (0 to 1) of all values do not exceed, at most an eighth too
 * high; 0 when empty. */
int64_t histogram_quantile(const struct histogram *h, double share);

#endif

/* histogram: a bucket's number is the power of two of its values and the three bits
 * below the first. */
#include "common/histogram.h"

#include <stddef.h>

enum { SUB_BITS = 3 };

static size_t bucket_of(int64_t us)
{
    int64_t value = us > 0 ? us : 0;
    unsigned shift = 0;
    size_t bucket;

    while (value >> shift >= 2 * HISTOGRAM_SUB)
        shift++;
    /* below 16 every value has a bucket of its own */
    bucket = ((size_t)shift << SUB_BITS) + (size_t)(value >> shift);
    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

/* Largest value of a bucket. */
static int64_t upper_end(size_t bucket)
{
    size_t shift = bucket < 2 * HISTOGRAM_SUB ? 0 : (bucket >> SUB_BITS) - 1;
    int64_t head = (int64_t)(bucket - (shift << SUB_BITS));

    return ((head + 1) << shift) - 1;
}

void histogram_record(struct histogram *h, int64_t us)
{
    h->count[bucket_of(us)]++;
}

void histogram_add(struct histogram *to, const struct histogram *from)
{
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        to->count[i] += from->count[i];
}

int64_t histogram_count(const struct histogram *h)
{
    int64_t n = 0;

    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        n += h->count[i];
    return n;
}

int64_t histogram_quantile(const struct histogram *h, double share)
{
    double wanted = share * (double)histogram_count(h);
    int64_t seen = 0;
    size_t last = 0;

    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (h->count[i] == 0)
            continue;
        last = i;
        seen += h->count[i];
        if ((double)seen >= wanted)
            break;
    }
    return seen == 0 ? 0 : upper_end(last);
}

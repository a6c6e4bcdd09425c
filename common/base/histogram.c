/* histogram: durations by classes. */
#include "common/base/histogram.h"

const int64_t histogram_bounds_us[HISTOGRAM_BOUNDS] = {
    100,   250,    500,    1000,   2500,    5000,    10000,   25000,
    50000, 100000, 250000, 500000, 1000000, 2500000, 10000000};

void histogram_add(struct histogram *h, int64_t us)
{
    int i = 0;

    while (i < HISTOGRAM_BOUNDS && us > histogram_bounds_us[i])
        i++;
    h->counts[i]++;
    h->sum_us += us;
}

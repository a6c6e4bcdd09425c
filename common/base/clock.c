/* clk: CLOCK_BOOTTIME, pauses, jitter. */
#include "common/base/clock.h"

#include <stdlib.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

int64_t clk_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t clk_ms(void)
{
    return clk_us() / 1000;
}

void clk_pause_ms(int64_t ms)
{
    struct timespec ts;

    if (ms <= 0)
        return;
    ts.tv_sec = (time_t)(ms / 1000);
    ts.tv_nsec = (long)(ms % 1000) * 1000000L;
    (void)nanosleep(&ts, NULL);
}

int64_t clk_jitter_ms(int64_t ms)
{
    static unsigned seed;
    static pid_t owner;

    if (owner != getpid()) { /* each child after fork needs a seed of its own */
        owner = getpid();
        seed = (unsigned)owner * 2654435761u ^ (unsigned)clk_us();
    }
    return ms <= 0 ? 0 : (int64_t)rand_r(&seed) % (ms + 1);
}

int64_t clk_backoff_ms(unsigned n, int64_t base_ms, int64_t cap_ms)
{
    int64_t most = n < 20 && base_ms << n < cap_ms ? base_ms << n : cap_ms;

    return most / 2 + clk_jitter_ms(most - most / 2);
}

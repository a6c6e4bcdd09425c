/* clock_world: writes the shift, then asks what time it is. */
#define _DEFAULT_SOURCE /* gettimeofday */
#include "tests/lib/clock_world.h"

#include <sys/time.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;

    (void)clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- our own ---- */

static int64_t day_ms(void)
{
    struct timeval tv;

    (void)gettimeofday(&tv, NULL);
    return (int64_t)tv.tv_sec * 1000 + tv.tv_usec / 1000;
}

void clock_jump_wall(int64_t ms)
{
    int64_t before[] = {read_clock(CLOCK_REALTIME), day_ms(), time(NULL)};
    int64_t boot = read_clock(CLOCK_BOOTTIME);

    clock_shim_shift()->wall_ms += ms;
    clock_assert_moved("CLOCK_REALTIME", before[0], read_clock(CLOCK_REALTIME), ms);
    clock_assert_moved("gettimeofday", before[1], day_ms(), ms);
    clock_assert_moved("time", before[2] * 1000, (int64_t)time(NULL) * 1000, ms);
    clock_assert_moved("CLOCK_BOOTTIME", boot, read_clock(CLOCK_BOOTTIME), 0);
}

void clock_jump_boot(int64_t ms)
{
    int64_t before = read_clock(CLOCK_BOOTTIME);
    int64_t monotonic = read_clock(CLOCK_MONOTONIC);

    clock_shim_shift()->boot_ms += ms;
    clock_assert_moved("CLOCK_BOOTTIME", before, read_clock(CLOCK_BOOTTIME), ms);
    clock_assert_moved("CLOCK_MONOTONIC", monotonic, read_clock(CLOCK_MONOTONIC), 0);
}

void clock_mend_own(void)
{
    struct clock_shift *shift = clock_shim_shift();

    shift->wall_ms = shift->boot_ms = shift->monotonic_ms = 0;
}

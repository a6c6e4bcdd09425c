/* clock_shim: the C library's clocks, asked from the kernel and moved. */
#define _DEFAULT_SOURCE /* syscall, gettimeofday */
#include "tests/testkit/clock_shim.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static struct clock_shift own;
static struct clock_shift *shift = &own;

/* A process that was to have its clocks moved and cannot must not run. */
__attribute__((constructor)) static void attach(void)
{
    const char *path = getenv(CLOCK_SHIM_FILE);
    const char *ahead = getenv(CLOCK_SHIM_WALL_MS);
    int fd;

    if (ahead != NULL)
        own.wall_ms = strtoll(ahead, NULL, 10);
    if (path == NULL)
        return;
    fd = open(path, O_RDWR | O_CLOEXEC);
    shift = mmap(NULL, sizeof *shift, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shift == MAP_FAILED) {
        perror(path);
        _exit(127);
    }
    (void)close(fd);
}

struct clock_shift *clock_shim_shift(void)
{
    return shift;
}

static int64_t shift_of(clockid_t id)
{
    switch (id) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        return shift->wall_ms;
    case CLOCK_BOOTTIME:
        return shift->boot_ms;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
        return shift->monotonic_ms;
    default:
        return 0;
    }
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
    int64_t ms = shift_of(id);

    if (syscall(SYS_clock_gettime, id, ts) != 0)
        return -1;
    ts->tv_sec += ms / 1000;
    ts->tv_nsec += ms % 1000 * 1000000;
    if (ts->tv_nsec < 0 || ts->tv_nsec >= 1000000000) {
        int step = ts->tv_nsec < 0 ? -1 : 1;

        ts->tv_sec += step;
        ts->tv_nsec -= step * 1000000000L;
    }
    return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timespec ts;

    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *t)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    if (t != NULL)
        *t = ts.tv_sec;
    return ts.tv_sec;
}

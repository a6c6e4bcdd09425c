/* clock_shim: a library that moves the clocks of the process it is loaded into: of a
 * server by LD_PRELOAD, of a test by being linked into it. Nothing that sleeps or waits
 * is changed, only what the time is said to be. */
#ifndef LEDGERLOCK_CLOCK_SHIM_H
#define LEDGERLOCK_CLOCK_SHIM_H

#include <stdatomic.h>
#include <stdint.h>

/* How far each clock is ahead of the kernel's. In a file that both sides map, so that a
 * test moves the clocks of a running server. */
struct clock_shift {
    _Atomic int64_t wall_ms;      /* CLOCK_REALTIME, gettimeofday, time */
    _Atomic int64_t boot_ms;      /* CLOCK_BOOTTIME: with it alone, a suspend */
    _Atomic int64_t monotonic_ms; /* CLOCK_MONOTONIC */
};

/* Names that file; without it the process has a shift of its own. */
#define CLOCK_SHIM_FILE "LL_TEST_CLOCK"

/* Without a file: how far the wall clock of the process is ahead. */
#define CLOCK_SHIM_WALL_MS "LL_TEST_WALL_MS"

/* The shift of this process. */
struct clock_shift *clock_shim_shift(void);

#endif

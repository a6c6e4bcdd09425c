/* slot: what a worker shares with its supervisor, in memory that outlives the worker.
 */
#ifndef LEDGERLOCK_SLOT_H
#define LEDGERLOCK_SLOT_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/histogram.h"
#include "common/metrics.h"

/* How a worker sees one of its servers. */
enum slot_server { SLOT_UNKNOWN, SLOT_UP, SLOT_DOWN };

/* When the worker got something done, on the clock of clk_us. */
struct pace {
    struct histogram batch_us; /* turns that worked, from pull to release */
    int64_t first_us;          /* begin of the first of them; 0: none yet */
    int64_t last_us;           /* end of the latest */
};

/* Written by the worker, read by the supervisor; pid and incarnation the other way
 * round. */
struct slot {
    struct metrics counters;
    struct pace pace;
    volatile sig_atomic_t postgres;
    volatile sig_atomic_t redis;
    volatile sig_atomic_t
        has_worked;    /* got through one whole turn: not crashing at start */
    char trouble[200]; /* why the last server went down */
    pid_t pid;
    int64_t incarnation; /* how often this slot was started */
};

#endif

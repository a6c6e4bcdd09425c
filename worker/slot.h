/* slot: what a worker shares with its supervisor, in memory that outlives the worker.
 */
#ifndef LEDGERLOCK_SLOT_H
#define LEDGERLOCK_SLOT_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/metrics.h"
#include "worker/hold.h"

/* How a worker sees one of its servers. */
enum slot_server { SLOT_UNKNOWN, SLOT_UP, SLOT_DOWN };

/* Written by the worker, read by the supervisor; pid and incarnation the other way
 * round. */
struct slot {
    struct metrics counters;
    volatile sig_atomic_t postgres;
    volatile sig_atomic_t redis;
    volatile sig_atomic_t has_worked; /* got something done: not crashing at start */
    char trouble[200];                /* why the last server went down */
    pid_t pid;
    int64_t incarnation; /* how often this slot was started */
    struct hold hold;    /* of this incarnation, or of a dead one until it is cleared */

    /* Of the dead one, as rescue_note_death wrote it; is_charged: by its successor. */
    char death[24];
    int64_t died_at_ms;
    bool is_guiltless;
    bool is_charged;
};

#endif

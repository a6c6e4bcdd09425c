/* slot: what a worker, or the listener, shares with its supervisor and the others of
 * the pool, in memory that outlives it. */
#ifndef LEDGERLOCK_SLOT_H
#define LEDGERLOCK_SLOT_H

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/histogram.h"
#include "common/metrics.h"
#include "worker/hold.h"
#include "worker/job.h"
#include "worker/walk.h"

/* How a worker sees one of its servers. */
enum slot_server { SLOT_UNKNOWN, SLOT_UP, SLOT_DOWN };

/* When the worker got something done, on the clock of clk_us. */
struct pace {
    struct histogram batch_us; /* turns that worked, from pull to release */
    int64_t first_us;          /* begin of the first of them; 0: none yet */
    int64_t last_us;           /* end of the latest */
};

enum { SLOT_ENDLESS = 16 };

/* Turns of a worker, and what was in vain. */
struct waste {
    int64_t turns;     /* pulls from a bucket */
    int64_t empty;     /* of these: nothing was due there any more */
    int64_t refused;   /* of these: rows were due, and none of them was worked */
    int64_t patient;   /* of these: for one row that had been passed over */
    int64_t pulled;    /* rows, as often as they were pulled */
    int64_t vain_us;   /* in turns that were empty or refused */
    int64_t paused_us; /* doing nothing, since all that was due was with others */
};

/* Where a worker stands among those who work the same job (queue.h). */
struct place {
    atomic_int job;        /* row of the registry */
    atomic_ullong buckets; /* a bit for each that its batch may come from */
    atomic_llong since_ms; /* is about a batch since then; 0: is not */
    atomic_llong waits_us; /* waits for its turn since then; 0: does not */
};

/* Written by the worker, read by the supervisor; pid and incarnation the other way
 * round. */
struct slot {
    struct metrics counters;
    struct pace pace;
    struct waste waste;
    volatile sig_atomic_t postgres;
    volatile sig_atomic_t redis;
    volatile sig_atomic_t has_worked; /* got something done: not crashing at start */
    char trouble[200];                /* why the last server went down */
    int wake_fd; /* what bell_ring wakes it by; open in every process of the pool */
    atomic_bool is_idle;   /* a worker: sleeps for want of work; the listener: the doors
                              are asked to notify, so it need not be told who sleeps */
    atomic_llong swept_ms; /* the first slot's, for all workers of the pool: when one
                              last began to gather what had come due */
    atomic_llong looked_ms; /* the first slot's, for all workers of the pool: when one
                               last found nothing due, or woke to look */
    atomic_ullong quiet; /* likewise: what the last look that found nothing knew of the
                            next one (look.c); 0: nothing */
    struct walk_line lines[JOB_TYPE_CT][WALK_BUCKETS]; /* the first slot's, likewise */
    atomic_ullong endless[SLOT_ENDLESS]; /* the first slot's, for all workers: keys
                                            without an end that were told of, hashed */
    atomic_uint accusals[JOB_TYPE_CT]; /* likewise: how often rows of a job were charged
                                          with a death */
    struct place place;
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

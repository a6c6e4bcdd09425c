/* shared: the memory that the processes of a pool share, and that outlives a worker. */
#ifndef LEDGERLOCK_SHARED_H
#define LEDGERLOCK_SHARED_H

#include <sys/types.h>

#include "common/base/cells.h"
#include "worker/batch/session.h"
#include "worker/pool/progress.h"
#include "worker/pool/timeline.h"

/* How far a worker got with its last batch. */
enum slot_state {
    SLOT_STARTS,
    SLOT_POSTGRES_DOWN,
    SLOT_CONNECTED, /* to PostgreSQL; no more is known */
    SLOT_REFUSED,   /* by PostgreSQL, for a right or a table that is not there now */
    SLOT_FAULT,     /* an error that is neither server's */
    SLOT_REDIS_DOWN,
    SLOT_REDIS_WAITS, /* a quorum: there, but started too lately to grant a lock */
    SLOT_WORKS,
    SLOT_STATES
};

/* A job in a cell, as the workers of this pool found it; times are clk_ms. */
struct cell_job {
    volatile int64_t left_ms;   /* when one last left; 0: none was there */
    volatile int64_t again_ms;  /* none goes there before */
    volatile int64_t behind_ms; /* when one last pulled as many rows as it may */
    volatile unsigned failures; /* visits in a row in which it could not be worked, */
    volatile int64_t away_ms;   /* and since when (clk_ms); 0: it can */
    volatile bool is_paused;    /* as was said */
};

struct cell_state {
    struct cell_job jobs[JOB_TYPE_CT];
    volatile bool is_checked;   /* its schema, rights and clocks were */
    volatile int64_t months_ms; /* when no month was missing (clk_ms); 0: to be seen */
    char trouble[300];          /* why some job could not be worked, the last time */
};

/* Of the whole pool, in the memory that its processes share. */
struct pool_cells {
    const struct cells *list; /* n is 0 where there are none */
    struct cell_state of[CELLS_MAX];

    /* Checks a database before it is worked, as `run` does at its start. */
    int (*check)(const struct config *c, struct err *e);
};

/* Outlives the worker. Written by the supervisor before it starts one: */
struct slot {
    const struct job_type *job;
    int64_t index, workers;               /* of those that work the job */
    int64_t incarnation;                  /* how often a worker was started here */
    size_t cell;                          /* of the pool's list; without cells 0 */
    struct counters when_left[CELLS_MAX]; /* the counters, as it last left that cell, */
    struct counters elsewhere[CELLS_MAX]; /* and what is of other cells in them */

    /* By the worker: */
    struct counters counters;
    struct measures measures;
    struct inflight inflight;
    volatile enum slot_state state;
    volatile int64_t works_ms;   /* when the state last became SLOT_WORKS (clk_ms) */
    volatile int64_t back_ms;    /* it comes round again by then (clk_ms) */
    volatile pid_t pid;          /* by the supervisor; 0: no worker is in the slot */
    char trouble[700];           /* why it got no further, */
    int64_t trouble_ms;          /* and when it last was so */
    volatile bool moves_on;      /* it ended to let the next one serve another cell */
    volatile int64_t opening_ms; /* from its start to the end of its first batch; 0: no
                                    batch has ended */
    char left[POOL_PROGRESS_LEFT]; /* run --once: the rows that it leaves, and why */
};

/* Of the whole pool. */
struct shared {
    char name[24]; /* of the pool */
    char host[64];
    atomic_llong commits;
    volatile int64_t tick_ms; /* when the supervisor last went round (clk_ms) */
    struct death_counts deaths;
    struct timeline timeline;
    struct pool_cells cells;
    size_t slot_ct;
    struct slot slots[];
};

#endif

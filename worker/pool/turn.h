/* turn: which cell a worker serves, and until when. A worker process serves one cell.
 * It leaves between two batches, when another cell of the pool waits; the supervisor
 * starts the next worker of the slot at the cell that nobody of the pool serves for
 * longest. */
#ifndef LEDGERLOCK_TURN_H
#define LEDGERLOCK_TURN_H

#include "common/base/cells.h"
#include "worker/jobs/job.h"

struct shared;
struct session;

/* A job in a cell, as the workers of this pool found it; times are clk_ms. */
struct cell_job {
    volatile int64_t left_ms;   /* when one last left; 0: none was there */
    volatile int64_t again_ms;  /* none goes there before */
    volatile int64_t behind_ms; /* when one last pulled as many rows as it may */
    volatile unsigned failures; /* visits in a row without a connection */
};

struct cell_state {
    struct cell_job jobs[JOB_TYPE_CT];
    volatile bool is_checked; /* its schema, rights and clocks were */
    volatile int64_t away_ms; /* since when nobody can work there (clk_ms); 0: well */
    char trouble[300];        /* and why */
};

/* Of the whole pool, in the memory that its processes share. */
struct pool_cells {
    const struct cells *list; /* n is 0 where there are none */
    struct cell_state of[CELLS_MAX];

    /* What `run` checks of a database before it works there. */
    int (*check)(const struct config *c, struct err *e);
};

/* Chooses the cell for the worker that starts next in the slot, and enters it into the
 * slot: the one with a batch in flight, else one that no worker of the pool serves for
 * longest, else one that is behind. False if there is none to go to before *at_ms. */
bool turn_choose(struct shared *shared, size_t slot, int64_t now_ms, int64_t *at_ms);

/* With a new connection: checks the database where nobody did, and takes one of the
 * places that the workers of all pools have in it, one a worker of the job, by an
 * advisory lock that ends with the session. *has is false if all are taken. */
MUST_CHECK int
turn_take_place(struct shared *shared, struct session *s, bool *has, struct err *e);

/* After a batch (is_idle: it found nothing to do): true if the worker is to leave. */
bool turn_is_over(struct shared *shared, size_t slot, int64_t begun_ms, bool is_idle);

/* Before a worker leaves a cell in which it could work, or had no place (is_full). */
void turn_leave(struct shared *shared, size_t slot, bool is_full);

/* A worker pulled as many rows as it may. */
void turn_note_behind(struct shared *shared, size_t slot);

/* A worker could not work there, and leaves; a worker could again. */
void turn_note_away(struct shared *shared, size_t slot, const char *why);
void turn_note_well(struct shared *shared, size_t slot);

#endif

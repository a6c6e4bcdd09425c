/* worker: one worker process, and the memory that it shares with its supervisor. */
#ifndef LEDGERLOCK_WORKER_H
#define LEDGERLOCK_WORKER_H

#include <sys/types.h>

#include "worker/batch/session.h"
#include "worker/pool/progress.h"
#include "worker/pool/timeline.h"
#include "worker/pool/turn.h"

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
    volatile int64_t works_ms;     /* when the state last became SLOT_WORKS (clk_ms) */
    volatile int64_t back_ms;      /* it comes round again by then (clk_ms) */
    volatile pid_t pid;            /* by the supervisor; 0: no worker is in the slot */
    char trouble[700];             /* why it got no further, */
    int64_t trouble_ms;            /* and when it last was so */
    volatile bool moves_on;        /* it ended to let the next one serve another cell */
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

/* The life of the worker in a slot; now: NULL for the database's clock. Works until it
 * is told to stop (TERM, which it blocks and asks for), or, if once, until
 * nothing is due: EXIT_OK, or EXIT_LEFT when the due rows could not be had for three
 * leases (its slot says why). The pool had its first success before a worker was
 * started: what is refused since is waited for, and no error ends a worker. */
enum exit_code worker_run(const struct config *c,
                          const char *now,
                          bool once,
                          struct shared *shared,
                          int slot);

/* A worker's row in the table workers. */
struct heartbeat {
    const char *host;
    const struct counters *elsewhere; /* counted in other cells */
    int64_t written_ms;
    struct counters written;
};

/* Writes the counters, at most once a second, each HEARTBEAT_MS when they did not
 * change; after an error they are written as a whole the next time. Without a usable
 * connection nothing is written, and 0 returned. */
MUST_CHECK int heartbeat(struct heartbeat *h, struct session *s, struct err *e);

/* When the next one is due (clk_ms). */
int64_t heartbeat_due_ms(const struct heartbeat *h);

/* The same at once, over a usable connection. heartbeat_first: of a worker that has
 * just connected; the next is due with its first batch. */
MUST_CHECK int heartbeat_now(struct heartbeat *h, struct session *s, struct err *e);
MUST_CHECK int heartbeat_first(struct heartbeat *h, struct session *s, struct err *e);

#endif

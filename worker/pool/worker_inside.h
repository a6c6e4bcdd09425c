/* worker: a worker process as its files share it: worker.c (its life) and
 * worker_trouble.c (pauses, and servers that come and go). */
#ifndef LEDGERLOCK_WORKER_INSIDE_H
#define LEDGERLOCK_WORKER_INSIDE_H

#include <signal.h>

#include "worker/pool/heartbeat.h"
#include "worker/pool/schedule.h"
#include "worker/pool/shared.h"

enum {
    FLIGHT_STEP_MS = 50,
    WORKER_WAKE = SIGURG /* rows of its job are due; a process without a worker in it
                            ignores the signal */
};

struct worker {
    struct session session;
    struct schedule schedule;
    struct heartbeat heartbeat;
    struct slot *slot;
    sigset_t signals; /* that pauses hear: TERM, WORKER_WAKE */
    bool stopping;
    bool is_woken; /* since its last step began */
    struct shared *shared;
    int64_t entered_ms; /* its cell */
    bool moves_on;      /* another cell waits, or this one cannot be worked */
    bool is_away;       /* its server is, or refuses */
    bool is_proved;     /* this connection takes writes */
    int64_t begun_ms;   /* of the last step, and then of its batch */
    int64_t well_ms;    /* when it last could work, or had nothing to do */
    struct pool_progress progress;
};

/* Pauses, but not past a signal to stop or to wake up, which no pause at all hears,
 * too. Calls that are under way go on meanwhile; where they left no room for more, the
 * pause ends when there is some. */
void worker_pause_ms(struct worker *w, int64_t least_ms);

/* A usable connection, and nothing of before that is open. */
MUST_CHECK int worker_ready(struct worker *w, struct err *e);

/* After a whole step. A fault is not over while nothing can be worked. A worker that
 * finds nothing due asks for no lock: it asks Redis whether it is back. */
void worker_note_success(struct worker *w, const struct batch_outcome *out);

/* After an error: tells the supervisor what it is, and pauses; or leaves the cell. */
void worker_survive(struct worker *w, const struct err *e, unsigned failures);

/* Another worker serves the job when this one could not work for longer than a lease.
 * An error of rows is no reason: another worker would meet it, too. */
void worker_stand_back(struct worker *w, const struct err *e);

/* Writes the heartbeat that is due. */
void worker_beat(struct worker *w);

#endif

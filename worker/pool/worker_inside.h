/* worker_inside: what worker.c and trouble.c share. */
#ifndef LEDGERLOCK_WORKER_INSIDE_H
#define LEDGERLOCK_WORKER_INSIDE_H

#include <signal.h>

#include "worker/pool/progress.h"
#include "worker/pool/schedule.h"
#include "worker/pool/worker.h"

struct worker {
    struct session session;
    struct schedule schedule;
    struct heartbeat heartbeat;
    struct slot *slot;
    sigset_t stops;
    bool stopping;
    bool is_paused;   /* the job was, when its rows were last asked for */
    int64_t begun_ms; /* of the last step, and then of its batch */
    int64_t well_ms;  /* when it last could work, or had nothing to do */
    struct pool_progress progress;
};

/* Tells the supervisor what keeps the worker from its work, and since when. */
void worker_note_trouble(struct worker *w, enum slot_state state, const char *why);

/* The kind of an error: PostgreSQL is away; it refuses what it allowed before; or it is
 * nobody's outage. */
bool worker_is_outage(const struct worker *w, const struct err *e);
bool worker_is_refusal(const struct err *e);
bool worker_is_fault(struct worker *w, const struct err *e);

#endif

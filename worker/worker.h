/* worker: one worker process: its connections, its name, what it is working on. */
#ifndef LEDGERLOCK_WORKER_H
#define LEDGERLOCK_WORKER_H

#include <stdbool.h>

#include "common/config.h"
#include "common/lock/lock.h"
#include "common/pg.h"
#include "worker/job.h"
#include "worker/slot.h"
#include "worker/walk.h"

enum { WORKER_NAME = 48, INCIDENTS_KEPT = 16 };

/* A COMMIT whose answer was lost, until it is known what became of it. */
struct unknown {
    bool pending;
    const struct job_type *job;
    int64_t token;
    int64_t xid;
    size_t n;
    int64_t items[BATCH_MAX];
    struct metrics counted; /* added up if it turns out committed */
};

/* One that could not be written to the journal yet. */
struct incident {
    char kind[16];
    char phase[16];
    char resource[64];
    char detail[256];
    int64_t token, xid;
    int64_t at_ms;
};

struct worker {
    const struct config *config;
    const char *now; /* NULL: the database's clock */
    bool once;
    unsigned jobs; /* bits of the registry */
    int index;     /* slot number in the pool */
    int peers;     /* workers of the pool */
    char pool[24];
    char host[64];
    char name[WORKER_NAME]; /* pool.slot.incarnation: never used twice */
    struct slot *slot;
    struct slot *listener;                   /* NULL: the pool has none */
    atomic_llong *looked_ms;                 /* of the pool, see struct slot */
    atomic_llong *swept_ms;                  /* likewise */
    atomic_ullong *quiet;                    /* likewise */
    struct walk_line (*lines)[WALK_BUCKETS]; /* of each job, likewise */
    atomic_ullong *endless;                  /* likewise */
    atomic_uint *accusals;                   /* likewise */
    bool met_endless;      /* a key without an end, since idle_since_ms */
    int64_t idle_since_ms; /* when it last worked something; 0: not begun */
    struct pg *pg;
    struct ll_client *locks; /* NULL: locks.mode is database-only */
    struct ll_lock *lock;
    struct batch *batch;
    struct walk walks[JOB_TYPE_CT];
    bool caught_up; /* epoch compared with Redis once */
    struct unknown unknown;
    struct incident unwritten[INCIDENTS_KEPT];
    size_t unwritten_ct;
    int64_t raised_since_ms; /* epochs raised in the present minute */
    int raised_ct;
    int64_t complained_ms; /* when a collision was last said */
    int64_t reported_ms; /* when the counters were last written to the workers table */
    struct metrics reported;
};

/* Adds to one of the worker's counters. */
static inline void worker_count(struct worker *w, enum metric m, int64_t n)
{
    w->slot->counters.value[m] += n;
}

#endif

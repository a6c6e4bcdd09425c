/* bench: what the benchmark modes share. */
#ifndef LEDGERLOCK_BENCH_H
#define LEDGERLOCK_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/config.h"
#include "worker/cli.h"
#include "worker/slot.h"

/* Flags of the verb. 0: what the mode takes when nothing is said. */
struct bench_flags {
    int64_t seconds;     /* of each timed part; the longest of a burn-down */
    int64_t repetitions; /* `locks`: medians are over these */
    int64_t rows;        /* subscriptions, orders or buyers that are made */
    const char *quorum;  /* `locks`: three URLs: also measure a quorum */
    bool steady;         /* always more due than can be done, for so many seconds */
    bool keep;           /* no wipe, no filling: what a steady run has left */
    bool load_only;      /* wipe and fill, measure nothing */
    bool no_audit;
    bool json;
};

/* Mode `locks`: the lock library beside plain hiredis, all in one run. Fills `doc`. */
MUST_CHECK int bench_locks(const struct config *c,
                           const struct bench_flags *f,
                           json_t *doc,
                           struct err *e);

/* ---- modes that run the pool ---- */

struct bench_mode {
    const char *name;
    const char *job;  /* as in pool.jobs */
    const char *unit; /* what is counted: "charges" */
    int64_t rows;     /* when none are asked for */
    int64_t users_of; /* so many rows share a user */
    int64_t skus, lines, pieces, stock_percent;
};

/* The mode of this name, or NULL. */
const struct bench_mode *bench_find(const char *name);

/* Wipes and fills the database, runs the pool over it, measures. Refuses a database
 * that is not marked (ERR_REFUSED). Fills `doc`; *held is false when the audit found a
 * broken invariant or a total is not what it must be. */
MUST_CHECK int bench_pool(const struct config *c,
                          const struct bench_flags *f,
                          const struct bench_mode *mode,
                          json_t *doc,
                          bool *held,
                          struct err *e);

/* Refuses a database without the mark, or whose schema is not this program's. */
MUST_CHECK int bench_check_mark(struct pg *pg, struct err *e);

/* Wipes, fills, vacuums, and checkpoints where that is allowed. */
MUST_CHECK int bench_load(struct pg *pg,
                          const struct bench_mode *mode,
                          int64_t rows,
                          bool steady,
                          struct err *e);

/* ---- readings ---- */

/* All counted since the server or the process began. */
struct bench_gauge {
    int64_t captured, fulfilled, rejected; /* committed rows */
    int64_t due, pending;                  /* left to do */
    int64_t wal_bytes, wal_records, wal_images, wal_flushes;
    int64_t
        postgres_us;  /* CPU of the server and its processes; -1: not this machine's */
    int64_t redis_us; /* -1: not asked, or no answer */
};

MUST_CHECK int
bench_read(struct pg *pg, const struct config *c, struct bench_gauge *g, struct err *e);

/* What became of the pool, apart from the database. */
struct bench_run {
    struct metrics counters;
    struct pace pace; /* of all workers together */
    struct waste waste;
    int64_t cpu_us;   /* of the workers and their supervisor */
    int64_t peak_kib; /* resident memory of the largest of them */
    int code;         /* exit code of the supervisor */
};

/* Runs the pool in a process of its own until it is done or the time is over. Nothing
 * of it is left when this returns. */
MUST_CHECK int bench_run_pool(const struct config *c,
                              const struct bench_flags *f,
                              struct bench_run *run,
                              struct err *e);

/* Section "waste": what the workers did in vain; `done` rows were committed. */
MUST_CHECK int bench_add_waste(const struct config *c,
                               const struct bench_run *run,
                               int64_t done,
                               json_t *doc,
                               struct err *e);

/* Section "waits": how many batches with a younger order of the same bucket came before
 * that of an order, as the tables tell. */
MUST_CHECK int bench_add_waits(struct pg *pg, json_t *doc, struct err *e);

/* "machine", "versions" and "settings" of the document. pg may be NULL. */
MUST_CHECK int
bench_describe(struct pg *pg, const struct config *c, json_t *doc, struct err *e);

/* Median of n values; sorts them. */
double bench_median(double *values, size_t n);

#endif

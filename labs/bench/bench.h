/* bench: what the parts of the benchmarks share. */
#ifndef LEDGERLOCK_BENCH_H
#define LEDGERLOCK_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/config.h"
#include "ops/cli/cli.h"

/* Flags of the program. 0: what the mode takes when nothing is said. */
struct bench_flags {
    int64_t seconds;     /* of each timed part; the longest of a burn-down */
    int64_t repetitions; /* `locks`: medians are over these */
    int64_t rows;        /* subscriptions, orders or buyers that are made */
    int64_t calls;       /* `calls`: so many are made, */
    int64_t in_flight;   /* of which so many are under way at once */
    const char *quorum;  /* `locks`: three URLs: also measure a quorum */
    bool shuffled;       /* rows lie in no order of their ids */
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

/* Mode `calls`: libcurl alone at the gateway of the settings. Fills `doc`. */
MUST_CHECK int bench_calls(const struct config *c,
                           const struct bench_flags *f,
                           json_t *doc,
                           struct err *e);

/* ---- modes that run the pool ---- */

struct bench_mode {
    const char *name;
    const char *job;  /* whose workers are measured */
    const char *unit; /* what is counted: "charges" */
    int64_t rows;     /* when none are asked for */
    int64_t users_of; /* so many rows share a user */
    int64_t skus, lines, pieces, stock_percent;
};

/* The mode of this name, or NULL. */
const struct bench_mode *bench_find(const char *name);

/* Wipes and fills the database, runs the pool over it, measures. Refuses a database
 * that is not marked (ERR_REFUSED). Fills `doc`. *code: EXIT_AUDIT when the audit found
 * a broken invariant or a total is not what it must be; the pool's own code when it
 * ended badly, which is an error too. */
MUST_CHECK int bench_pool(const struct config *c,
                          const struct bench_flags *f,
                          const struct bench_mode *mode,
                          json_t *doc,
                          enum exit_code *code,
                          struct err *e);

/* Refuses a database without the mark, or whose schema is not this program's. */
MUST_CHECK int bench_check_mark(struct pg *pg, struct err *e);

/* Wipes, fills, vacuums, and checkpoints where that is allowed. */
MUST_CHECK int bench_load(struct pg *pg,
                          const struct bench_mode *mode,
                          const struct bench_flags *f,
                          int64_t rows,
                          struct err *e);

/* The figures of the kernel for a pool that has ended. */
struct bench_run {
    int64_t cpu_us;   /* of the workers and their supervisor */
    int64_t peak_kib; /* resident memory of the largest worker; 0: not known */
    int code;         /* exit code of the supervisor */
};

/* Runs `ledgerlock run` with the settings of c until it is done or the time is over.
 * Nothing of it is left when this returns. */
MUST_CHECK int bench_run_pool(const struct config *c,
                              const struct bench_flags *f,
                              const char *job,
                              struct bench_run *run,
                              struct err *e);

/* Puts a value into a document; out of memory ends the program. */
void bench_put(json_t *to, const char *key, json_t *value);

/* ---- readings ---- */

/* All counted since the server or the process began. */
struct bench_gauge {
    int64_t captured, fulfilled, rejected; /* committed rows */
    int64_t due, pending;                  /* left to do */
    int64_t now_us;                        /* the clock of the database */
    int64_t wal_bytes, wal_images, wal_flushes;
    int64_t postgres_us; /* CPU of its processes; -1: not this machine's */
    int64_t redis_us;    /* -1: not asked, or no answer */
};

MUST_CHECK int
bench_read(struct pg *pg, const struct config *c, struct bench_gauge *g, struct err *e);

/* "machine", "versions" and "settings" of the document. pg may be NULL. */
MUST_CHECK int
bench_describe(struct pg *pg, const struct config *c, json_t *doc, struct err *e);

#endif

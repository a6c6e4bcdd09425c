/* session: one worker process as its batches see it: connections, name, the batch under
 * way, and where its supervisor reads what it counts. */
#ifndef LEDGERLOCK_SESSION_H
#define LEDGERLOCK_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>

#include "common/base/histogram.h"
#include "worker/batch/busy.h"
#include "worker/batch/inflight.h"
#include "worker/jobs/job.h"

enum { WORKER_NAME = 48, INCIDENTS_KEPT = 16, BUSY_SHOWN = 4 };

/* A worker that is well says something to PostgreSQL so often, whatever it waits for.
 * The view live_workers has those of the last two times. */
enum { HEARTBEAT_MS = 5000 };

/* Every worker counts these; the counters of its job follow from COUNT_JOB on. busy:
 * keys that another holder had; row_locked: keys that we held in Redis while another
 * session had their row, which is busy without Redis. */
/* clang-format off */
#define POOL_COUNTERS(X)                                                    \
    X(batches) X(granted) X(busy) X(row_locked) X(lost) X(fenced)           \
    X(uncertain) X(commit_unknown) X(conflicts) X(parked) X(restarts)
/* clang-format on */
#define COUNT_ONE(name) COUNT_##name,

enum pool_counter { POOL_COUNTERS(COUNT_ONE) COUNT_JOB };

#undef COUNT_ONE

/* Names of the counters of a job's workers, the pool's first; how many there are. */
size_t session_counter_names(const struct job_type *job,
                             const char *names[COUNTERS_MAX]);

/* A key that another holder has. */
struct shown_key {
    char name[RESOURCE_NAME];
    int64_t since_ms, at_ms; /* met first and last (clk_ms); 0: none */
    int64_t left_ms;         /* of its lease, as of at_ms; -1: it has no end */
};

/* For whoever watches the pool; a worker writes it and reads none of it. */
struct measures {
    struct histogram lock;        /* the call that takes the keys of a batch */
    struct histogram transaction; /* from BEGIN to the end of the transaction */
    int64_t settled[2];   /* COMMITs in doubt: those not committed, those committed */
    int64_t stale;        /* rows that were pulled, but another had worked when we had
                             their locks */
    int64_t lease_end_ms; /* of the keys in flight, or of the last ones (clk_ms); 0:
                             they are not granted yet */
    struct shown_key busy[BUSY_SHOWN]; /* met last */
};

/* A transaction: under way, or with a COMMIT whose answer is lost. */
struct attempt {
    int64_t token, xid;
    int64_t only; /* the one item that it is about; 0: all that can be worked */
    struct job_result done; /* true if it commits */
    struct job_rows rows; /* of this transaction; n is 0 before its rows are claimed */
    bool in_doubt;        /* COMMIT was sent, and no answer came */
    bool is_lost;         /* the lease was, before COMMIT: that was told */
    bool is_fenced; /* nothing was applied: a row has a fence above the token, and no
                       younger item may pass one that needs it */
    int code;       /* how it ended: 0 or an error's */
};

/* An incident that could not be written to the incident log yet. */
struct incident {
    const char *kind, *phase; /* literals */
    char resource[64];
    char detail[256];
    int64_t token, xid;
    int64_t at_ms;
};

struct flights;

struct session {
    const struct config *config;
    const struct job_type *job;
    const char *now; /* NULL: the database's clock */
    char pool[24];
    int slot;
    int64_t incarnation;    /* how often a worker was started in the slot */
    char name[WORKER_NAME]; /* pool.slot.incarnation: never used twice */
    struct pg *pg;
    struct rlock_client *locks; /* NULL: not opened, or locks.mode is database-only */
    int64_t secret;             /* stamp of Redis' password file when it was read */
    struct rlock *lock;
    struct batch *batch;
    bool serves;             /* this worker serves the job (standby.c) */
    bool holds;              /* and its connection holds the lock of that */
    bool has_place;          /* in its cell; without cells false (visit.c) */
    struct rlock *serving;   /* its key behind a transaction pooler */
    int64_t clocks_ms;       /* when clocks.c found the servers' right; 0: not yet */
    int64_t months_ms;       /* when no month was missing (months.c); 0: to be seen; */
    bool months_fail;        /* the last try to make some did */
    struct busy busy;        /* keys that were busy, or are left out for a while */
    struct flights *flights; /* calls of the job; NULL: it makes none */
    bool feeds_others; /* since answers were settled, rows of other jobs are due */
    struct attempt attempt;
    bool is_early; /* no lock, though a majority of the servers is there: they started
                      too lately */
    int64_t floor; /* tokens are higher: the highest fence that a row refused us with */
    int64_t far_fence; /* the highest that it told of */
    struct incident unwritten[INCIDENTS_KEPT];
    size_t unwritten_ct;

    /* In memory shared with the supervisor. */
    struct counters *counters;
    struct measures *measures;
    struct inflight *inflight;
    struct death_counts *deaths; /* of the whole pool */
    atomic_llong *commits;       /* likewise */
};

/* Adds to one of the worker's counters. */
static inline void session_count(struct session *s, enum pool_counter c, int64_t n)
{
    s->counters->value[c] += n;
}

/* Opens the worker's PostgreSQL connection, every timeout shorter than the lease, every
 * statement that a batch needs prepared. */
MUST_CHECK int session_connect(struct session *s, struct err *e);

/* ERR_SCHEMA if the database is not that of the cell whose settings these are; 0
 * without cells. */
MUST_CHECK int session_check_cell(const struct config *c, struct pg *pg, struct err *e);

/* Makes the worker's lock client (no I/O yet) if there is none; none when locks.mode is
 * database-only. */
MUST_CHECK int session_open_locks(struct session *s, struct err *e);

/* Tokens are above the session's floor from now on. A floor that the lock library
 * refuses is said: its rows wait. */
void session_raise_floor(struct session *s);

/* After a failure of Redis: true if its password file is another one by now; then the
 * client is closed by session_forget_secret, so that the next session_open_locks reads
 * the file. Other locks of the client must be freed before. */
bool session_secret_is_new(const struct session *s);
void session_forget_secret(struct session *s);

/* Closes the connections. */
void session_close(struct session *s);

/* ---- for tests ---- */

/* Places of a batch, in their order. */
enum hook_point {
    HOOK_BEFORE_LOCK,
    HOOK_AFTER_LOCK,
    HOOK_BEFORE_BEGIN,
    HOOK_AFTER_CLAIM,
    HOOK_BEFORE_COMMIT,
    HOOK_AFTER_COMMIT,
    HOOK_ENDED, /* the transaction: attempt.code */
    HOOK_BEFORE_RELEASE,
    HOOK_SETTLED,       /* an attempt that was in doubt: attempt.code */
    HOOK_BEFORE_SETTLE, /* answers of a gateway are written down */
    HOOK_AFTER_SETTLE
};

/* Called at each place by a worker; NULL but in a test program. */
extern void (*session_hook)(const struct session *s, enum hook_point point);

static inline void session_reach(const struct session *s, enum hook_point point)
{
    if (session_hook != NULL)
        session_hook(s, point);
}

#endif

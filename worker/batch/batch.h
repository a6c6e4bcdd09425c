/* batch: rows that are pulled, locked, worked and released together. */
#ifndef LEDGERLOCK_BATCH_H
#define LEDGERLOCK_BATCH_H

#include "worker/batch/session.h"

enum { BATCH_REFS = 16384 };

/* How far a key is. */
enum key_state {
    KEY_BUSY,    /* not asked for yet, or another holder has it */
    KEY_GRANTED, /* its lock is ours */
    KEY_WANTED,  /* the transaction is to claim its row */
    KEY_CLAIMED  /* the row is locked in the transaction, its fence not above our token
                  */
};

/* A row that must be locked: in Redis under `name`, in PostgreSQL by its claim. */
struct batch_key {
    int64_t id;
    enum resource_kind kind;
    enum key_state state;
    char name[RESOURCE_NAME];
};

/* An item needs the key of each of its refs. */
struct batch_ref {
    int64_t id;
    enum resource_kind kind;
    size_t key; /* index into keys; while they are sorted: of the ref */
};

/* Behind a row: its shard, the time at which it is due, its id. */
struct batch_place {
    int64_t shard;
    int64_t at; /* in microseconds since 2000; BATCH_HEAD: before all of the shard */
    int64_t id;
};

#define BATCH_HEAD INT64_MIN /* -infinity to PostgreSQL */

/* The rows to work: those that are due, or some items. */
struct batch_order {
    struct batch_place from; /* behind it, but for those that need a key that was met
                                busy in this round (busy.h) */
    bool begins;             /* a round */
    int64_t skip;            /* without shards: the oldest that are left to others */
    size_t limit;
    bool is_idle; /* nothing was due: the job's probe is asked before the pull */
    const int64_t *items; /* each in a transaction of its own; NULL: what is due */
    size_t item_ct;
};

/* How it went. */
struct batch_outcome {
    size_t pulled;           /* rows that were due */
    size_t worked;           /* of these: decided, or parked */
    bool is_full;            /* there may be more behind them */
    bool due_again;          /* some that were worked are due again */
    bool is_standby;         /* another worker serves the job: nothing was pulled */
    bool is_behind;          /* rows before those that it pulled may be due */
    bool is_paused;          /* the job is: nothing of it is pulled */
    bool is_refused;         /* each that was tried by itself met an error */
    bool wants_months;       /* some were missing, */
    bool makes_months;       /* and it made a few */
    struct batch_place last; /* the last row; if it is refused, that was tried */
    int64_t pull_ms;         /* how long the pull took */
};

/* Nothing is due. */
static inline bool batch_found_nothing(const struct batch_outcome *out)
{
    return out->pulled == 0 && !out->is_behind;
}

struct batch {
    size_t n; /* items */
    int64_t items[BATCH_MAX];
    struct pg_tid places[BATCH_MAX]; /* of the items, when they were pulled */
    int64_t times[BATCH_MAX];        /* at which they were due, in microseconds */
    size_t first_ref[BATCH_MAX + 1]; /* item i needs first_ref[i] .. first_ref[i + 1] */
    struct batch_ref refs[BATCH_REFS];
    struct batch_ref sorted[BATCH_REFS]; /* scratch */
    size_t key_ct;                       /* sorted by kind and id, none twice */
    struct batch_key keys[RLOCK_KEYS_MAX];
    struct rlock_key names[RLOCK_KEYS_MAX];
    int64_t ids[RLOCK_KEYS_MAX]; /* scratch: ids of one kind */
    struct batch_outcome out;
};

/* Pulls, locks, applies in one transaction, releases; `out` of the batch tells how it
 * went. An item whose key is busy is left for the next round (busy.h); one that is at
 * fault itself is parked. Errors: ERR_REDIS (nothing was done),
 * ERR_UNKNOWN (noted; in_doubt_settle on a new connection), ERR_CONN and ERR_TIMEOUT
 * (rolled back), ERR_CONFLICT (rolled back, try again), any other: it is
 * not known what is wrong, nothing is parked for it. */
MUST_CHECK int
batch_run(struct session *s, const struct batch_order *order, struct err *e);

/* Sets session.serves if this worker is the one that serves the job, of all pools: it
 * holds an advisory lock of its session, or behind a transaction pooler a key with a
 * short lease. Behind a pooler without Redis there is neither, and each serves. So does
 * each while a session that is no worker's holds that advisory lock. ERR_REDIS: it does
 * not answer, so this worker asks for neither. */
MUST_CHECK int standby_check(struct session *s, struct err *e);

/* How often a worker that stands by asks, and how long one that has yielded does not.
 */
enum { STANDBY_ASKS_MS = 250, STANDBY_YIELDS_MS = 4 * STANDBY_ASKS_MS };

/* After a step that broke, whatever broke it: if nothing but that came for longer than
 * a lease (idle_ms), the worker serves no longer. True if it did until now. */
bool standby_yield(struct session *s, int64_t idle_ms);

/* How many rows of the job are due; -1: PostgreSQL does not say. */
int64_t batch_due(struct session *s);

/* The transaction of the attempt is in doubt: asks what became of it, waits while it
 * runs, adds up what it counted, releases its keys. ERR_TIMEOUT: it still runs. */
MUST_CHECK int in_doubt_settle(struct session *s, struct err *e);

/* If the worker that was in this slot before died over a batch: ends its session, frees
 * its keys, and works its rows one by one. An item that took pool.park_after workers
 * with it is parked, provided that something was committed since the first. */
MUST_CHECK int crash_recover(struct session *s, struct err *e);

/* Writes the incidents that wait for a connection, with the time at which they
 * happened. Incidents that an error leaves wait further. */
MUST_CHECK int incidents_write(struct session *s, struct err *e);

/* The process ends: says in the log which stay unwritten. */
void incidents_give_up(struct session *s);

/* ---- between the files of the batch ---- */

/* Fills the batch with rows and their keys; fewer when the keys would not fit into one
 * lock call. An item that alone needs more is parked. */
MUST_CHECK int
batch_pull(struct session *s, const struct batch_order *order, struct err *e);

/* Finds a key; NULL if the batch has no such. */
struct batch_key *batch_find(struct batch *b, int kind, int64_t id);

/* Publishes the items and keys, before the keys are asked for: all are ITEM_PULLED. */
void items_publish(const struct batch *b, struct inflight *f, int64_t incarnation);

/* The items of a state whose every key is at least so far come into another one. */
void items_move(struct session *s,
                enum item_state from,
                enum key_state least,
                enum item_state to);

/* The attempt begins: the items that are granted, or the `only` one, are tried, and
 * their keys wanted. */
void items_want(struct session *s);

/* The items of a state, into rows; how many. */
size_t
items_list(const struct session *s, enum item_state state, struct job_rows *rows);

/* Parked items are worked. The list is in the order of the batch; items that the batch
 * does not have stand at its end. */
void items_park(struct session *s, const int64_t *items, size_t n);

/* Counts a lost lease, and writes the incident. */
void batch_note_lost(struct session *s, const char *phase, const char *detail);

/* ERR_REDIS, for what a call of the lock library answered; sets session.is_early. */
int batch_redis_fault(struct session *s, int code, struct err *e);

/* Takes a key that nobody wants and gives it back, as a batch does. Returns 0 or the
 * fault of the lock library, with ERR_REDIS in `e`: Redis answers, and lets this user
 * do no such thing, or takes no writes, or grants nothing yet (session.is_early). */
MUST_CHECK int batch_try_lock(struct session *s, struct err *e);

/* Takes every key that is free; the attempt's token stays 0 when none is. ERR_REDIS:
 * unreachable, unsure, or it grants nothing yet. */
MUST_CHECK int batch_lock(struct session *s, struct err *e);

/* The token of a batch that holds no Redis lock (locks.mode database-only), made as the
 * lock library makes them, by PostgreSQL's clock. */
MUST_CHECK int batch_take_token(struct session *s, struct err *e);

/* The next tokens are higher than the fence that a row refused one with. */
void batch_raise_floor(struct session *s, int64_t fence);

/* Releases the lease; a loss noticed here is counted and journaled. Nothing to release
 * is fine. */
void batch_release(struct session *s);

/* Locks the wanted rows of all kinds in the open transaction; marks those it got. Of a
 * job that one worker serves in order: attempt.is_fenced if a row was left out for a
 * fence that a higher token can pass. */
MUST_CHECK int batch_claim(struct session *s, struct err *e);

/* After the transaction: a row that the claim did not return is busy, fenced, or does
 * not exist; the items that need an absent one are parked. */
MUST_CHECK int batch_report_refused(struct session *s, struct err *e);

/* Runs the job's `apply` over the rows of the attempt. A constraint that an effect
 * breaks is ERR_CONSTRAINT with its name. */
MUST_CHECK int batch_apply(struct session *s, struct err *e);

/* The transaction of the attempt is committed: adds up what it has done. */
void batch_count(struct session *s);

/* True if an error is the fault of the row that was worked alone: a constraint that the
 * job names, or an amount out of range outside of triggers. Any other belongs to the
 * machine. */
bool parked_is_rows_fault(const struct job_type *job, const struct err *e);

/* Parks those of the items that still can be worked, counts them, and says so in the
 * incident log. */
MUST_CHECK int park_items(
    struct session *s, const int64_t *items, size_t n, const char *why, struct err *e);

/* Counts what the workers of the slot have parked: the answer to that may be lost. */
void parked_count(struct session *s);

/* Makes the months of that time (NULL: the database's clock) and the two to come, and
 * for two seconds those of old rows; all of them in a Citus cluster, whose coordinator
 * may take longer for one than a statement of a worker lasts. */
MUST_CHECK int
months_begin(struct pg *pg, const char *now, bool is_distributed, struct err *e);

/* Makes some of the missing months at the start of the pool's first worker and once an
 * hour, and then until none is missing. A failure is said and is no error: there are
 * two months' time. True: some were made. */
bool months_tend(struct session *s);

/* A row's month is missing: makes some, be it those of other rows. `out` of the batch
 * says if it did: then there may be more. */
MUST_CHECK int months_make(struct session *s, struct err *e);

/* ERR_REFUSED if the clock of the server is farther from ours than pool.clocks_apart_s.
 * The first also tells PostgreSQL's time. */
MUST_CHECK int
clocks_check_postgres(const struct session *s, int64_t *us, struct err *e);
MUST_CHECK int clocks_check_redis(const struct session *s, struct err *e);

/* Both, once an hour and after each outage (clocks_ms is 0): no row is worked
 * meanwhile.
 */
MUST_CHECK int clocks_tend(struct session *s, struct err *e);

/* True if the error is that the month of a row has no partition. */
bool months_is_missing(const struct err *e);

/* One incident of the attempt, outside its transaction. kind as in the table's CHECK.
 * Logged as "lock.<kind>" too; never fails the work. When the connection is broken it
 * is kept, the first INCIDENTS_KEPT of them. */
void incident_log(struct session *s,
                  const char *kind,
                  const char *phase,
                  const char *resource,
                  const char *detail);

#endif

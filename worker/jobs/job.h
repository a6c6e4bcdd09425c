/* job: what a job type is. The batch and the pool know this and nothing of billing or
 * orders.
 *
 * Every job has the same beats: pull due rows, lock their keys, claim and apply in one
 * transaction, release. A new one is a file of its own, its statements and a line in
 * registry.h. */
#ifndef LEDGERLOCK_JOB_H
#define LEDGERLOCK_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/config.h"
#include "common/base/counters.h"
#include "common/base/err.h"
#include "common/base/registry.h"
#include "common/lock/lock.h"
#include "common/pg/pg.h"
#include "worker/jobs/resource.h"

enum { BATCH_MAX = RLOCK_KEYS_MAX, JOB_COUNTERS = 8, JOB_CONSTRAINTS = 32 };

/* Rows to work, in parallel. The place of an item is true as long as nobody has written
 * it since it was pulled. */
struct job_rows {
    size_t n;
    int64_t items[BATCH_MAX];
    struct pg_tid places[BATCH_MAX]; /* of the items, if the pull tells */
    int64_t owners[BATCH_MAX];       /* the first key of each item: who pays */
};

/* The effects of a transaction, true once its COMMIT is known. */
struct job_result {
    int64_t counts[JOB_COUNTERS]; /* by the job's counters */
    int64_t due_again;            /* items that are due again at once */
    int64_t effects;              /* rows that carry the token, as `effects` counts */
};

/* Calls outside of the database, which a job makes after its COMMIT: `apply` wrote down
 * that they are made, and no transaction is open meanwhile. */
struct job_calls {
    const struct sql_text *requests; /* $1 token, $2 items: a row for each call to be
                                        made: the members of struct gateway_request */
    const struct sql_text *settle; /* $1 worker, $2 now; in parallel $3 items, $4 tokens
                                      of their batches, $5 outcomes (gateway_word), $6
                                      references, $7 reasons, $8 milliseconds until the
                                      next call. The row has items that are settled,
                                      then the counters of answers from the second on,
                                      then of how many other jobs may do more now */
    const struct sql_text *take_over; /* $1 slot, $2 worker: the calls of those who died
                                         in the slot are due */
};

/* A counter of items; the last one of a job is followed by one without a name. */
struct job_counter {
    const char *name;
    bool stays_due; /* what it counts was not decided */
};

struct job_type {
    const char *name;
    const char *item; /* the name of an item in logs: "subscription" */
    int64_t shards;   /* into which its due rows are divided; 0: the oldest come first,
                         and one worker serves them at a time (job_is_shared) */
    /* Of a job without shards: true if all workers serve it at once. NULL: never. */
    bool (*in_any_order)(const struct config *c);
    int kinds; /* of resources that its items may need, from the first */
    struct job_counter counters[JOB_COUNTERS + 1];
    /* Named constraints that park a row whose effect breaks them; ends with NULL. */
    const char *constraints[JOB_CONSTRAINTS + 1];

    /* None of both pulls returns a row while table paused_jobs has the job.
     * $1 the shard to begin with, or without shards how many of the oldest rows are
     * passed over; $2 now, $3 limit; $4 a time and $5 an item: in that
     * shard only the rows behind them are read. One row of parallel arrays: items,
     * resource kinds (null: users all), ids of the resources, places (may be null),
     * times at which the items are due; the keys of an item stand together, its owner
     * first; then the shard of the last one; then true if the job is paused. */
    const struct sql_text *pull;
    const struct sql_text *probe; /* may be NULL. $1 now: true if a row may be due, true
                                     if the job is paused */
    const struct sql_text
        *pull_items; /* $1 items, $2 now: the same of those still due */

    /* Re-reads, decides and writes all effects of the batch in the open transaction.
     * The first apply_params of: $1 token, $2 worker, $3 now; in parallel $4 items, $5
     * their places, $6 their owners; $7 the setting, $8 the form. One row: the counters
     * in order, how many items are due again at once, how many rows carry the token. */
    const struct sql_text *apply;
    size_t apply_params;
    int64_t (*setting)(const struct config *c);  /* may be NULL: 0 */
    const char *(*form)(const struct config *c); /* may be NULL: NULL */

    const struct job_calls *calls;  /* NULL: none */
    const struct sql_text *effects; /* $1 token, $2 items: how many carry the token */
    const struct sql_text
        *park; /* $1 the job, $2 items, $3 token, $4 worker, $5 why: never pulled again;
                  says so in the incident log; returns those that it parked */

    const struct sql_text
        *feeding; /* may be NULL. $1 now, $2 the jobs of the pool: how many rows,
                     of this one and of others, may make rows of this one due:
                     run --once waits for them */

    /* For the verbs status and parked. */
    const struct sql_text *backlog; /* $1 now: one row: due, age of the oldest that is
                                       due in ms, future, parked */
    const struct sql_text *to_do; /* $1 now: about how often its counters will count, if
                                     an item may be due several times. NULL: due */
    const struct sql_text *list_parked;    /* $1 the job, $2 how many at most: row (what
                                              the item is), id, since as text, reason,
                                              by id */
    const struct sql_text *release_parked; /* $1 the job, $2 items: those that were
                                              given back to the workers, journaled as
                                              'resumed' */
};

#define JOB_EXTERN(name, ...) extern const struct job_type job_##name;
JOB_TYPES(JOB_EXTERN)
#undef JOB_EXTERN

enum {

#define JOB_ONE(name, ...) +1
    JOB_TYPE_CT = 0 JOB_TYPES(JOB_ONE)
#undef JOB_ONE
};

extern const struct job_type *const job_types[JOB_TYPE_CT];

/* True if several workers serve the job at once: it has shards, or the settings say
 * that its rows may be served in any order. */
bool job_is_shared(const struct job_type *job, const struct config *c);

/* pool.<job>.poll_ms. */
int64_t job_poll_ms(const struct job_type *job, const struct config *c);

/* About how much is to be decided by this job until nothing is due: its counters that
 * decide count so far. */
MUST_CHECK int job_to_do(const struct job_type *job,
                         struct pg *pg,
                         const char *now,
                         int64_t *n,
                         struct err *e);

/* The most rows of one transaction: pool.batch, or pool.<job>.batch if that is 0. */
int64_t job_batch_rows(const struct job_type *job, const struct config *c);

#endif

/* inflight: what a worker works, in memory that outlives it, where the worker that
 * comes after it in its slot finds it.
 *
 * Written by the worker alone; read by nobody while it lives, since its successor
 * starts when it is dead. So it only has to be whole whatever the instruction that the
 * writer died at: is_set is cleared before anything is changed and set when all of it
 * is there. The nonce is written later, by the lock library as it asks for the keys:
 * half of one is nobody's. */
#ifndef LEDGERLOCK_INFLIGHT_H
#define LEDGERLOCK_INFLIGHT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/lock/lock.h"
#include "worker/jobs/resource.h"

struct job_type;

/* How far an item of the batch is. */
enum item_state {
    ITEM_PULLED,  /* its keys are asked for */
    ITEM_BUSY,    /* another has a key of it */
    ITEM_GRANTED, /* its keys are ours */
    ITEM_TRIED,   /* the transaction is over it */
    ITEM_CLAIMED, /* its rows are locked in the transaction: its effects are next */
    ITEM_WORKED,  /* decided, or parked */
    ITEM_LEFT     /* for a later round */
};

struct inflight {
    atomic_bool is_set;
    int64_t incarnation; /* of the worker that it belongs to */
    size_t n, key_ct;
    char nonce[RLOCK_NONCE_SIZE]; /* "": no key asked for yet */
    int64_t items[RLOCK_KEYS_MAX];
    atomic_uchar states[RLOCK_KEYS_MAX];       /* of the items: enum item_state */
    char names[RLOCK_KEYS_MAX][RESOURCE_NAME]; /* of the keys */
    bool is_busy[RLOCK_KEYS_MAX];              /* of the keys: another holder has it */

    atomic_bool is_claimed; /* all that the attempt has are: the states are written */
    atomic_llong commits;   /* of the pool, when the batch began */

    /* By the supervisor, of the one that died. */
    char death[24]; /* "signal 11" */
    int64_t died_at_ms;
};

/* An item that workers of the pool died over, each while it worked the item alone. */
struct death_count {
    const struct job_type *job; /* NULL: a free entry */
    int64_t item;
    atomic_llong deaths; /* 0 again when the item was parked, or worked alone */
    long long commits;   /* of the pool, as the batch of the first death began */
};

/* Of the whole pool: written by the supervisor, read by its workers. */
enum { DEATH_COUNTS = 64 };

struct death_counts {
    struct death_count entries[DEATH_COUNTS];
    size_t next; /* the oldest, which makes room for a new one */
};

/* All of it is done or given up, and the keys are released or left to their lease. */
void inflight_clear(struct inflight *f);

/* True if there is anything, and it makes sense: the dead may have written anywhere. */
bool inflight_is_set(const struct inflight *f);

/* A worker ended with this status of waitpid; was_told: we had told it to stop. Returns
 * the item that the death counts against: the only one that was claimed; 0 for none. */
int64_t inflight_note_death(
    struct inflight *f, int64_t incarnation, int status, bool was_told, int64_t now_ms);

/* One more death over an item, when the pool had that many commits; how many it were.
 */
int64_t death_count_add(struct death_counts *s,
                        const struct job_type *job,
                        int64_t item,
                        long long commits);

/* NULL: no worker died over it. */
struct death_count *
death_count_find(struct death_counts *s, const struct job_type *job, int64_t item);

#endif

/* batch: rows that were pulled together, and the keys that they need. */
#ifndef LEDGERLOCK_BATCH_H
#define LEDGERLOCK_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/lock/lock.h"
#include "worker/key.h"
#include "worker/turn.h"
#include "worker/worker.h"

enum { BATCH_REFS = 16384 };

/* A row that must be locked: in Redis under `name`, in PostgreSQL by its kind's claim.
 */
struct batch_key {
    int64_t id;
    enum resource_kind kind;
    bool granted; /* Redis lock held */
    bool wanted;  /* some item of ours can be worked only with it */
    bool claimed; /* row locked in the transaction, with a fence not above our token */
    struct pg_tid
        place; /* of the row, and what is in it: told by the claim of users, */
    int64_t balance_minor; /* true until the end of its transaction */
    char name[KEY_NAME];
};

/* One of the refs of a batch, on its way to a key. */
struct sorted_ref {
    int64_t id;
    enum resource_kind kind;
    unsigned ref;
};

struct batch {
    size_t n;      /* items */
    size_t served; /* buckets of the order that have nothing due beside them */
    bool is_full;  /* as many were pulled as were asked for */
    int64_t items[BATCH_MAX];
    struct pg_tid places[BATCH_MAX]; /* of the items, when they were pulled */
    size_t first_ref[BATCH_MAX +
                     1]; /* item i needs refs first_ref[i] .. first_ref[i + 1] */
    int64_t
        crashes[BATCH_MAX]; /* deaths that an item is charged with; -1: no suspect */
    size_t suspect_ct;      /* suspects among the rows pulled */
    bool is_suspect;        /* the one item is one */
    unsigned accusals;      /* of the pool and the job, before the pull */

    struct {
        int64_t id;
        enum resource_kind kind;
        size_t key; /* index into keys */
    } refs[BATCH_REFS];

    size_t key_ct; /* sorted by kind and id, none twice */
    struct batch_key keys[LL_KEYS_MAX];
    struct ll_key names[LL_KEYS_MAX];
    int64_t ids[LL_KEYS_MAX];             /* scratch: ids of one kind */
    struct sorted_ref sorted[BATCH_REFS]; /* scratch */
    struct job_rows work; /* items whose every key is granted and claimed */
    int64_t overdue;      /* items below it are not passed over */
    int64_t youngest;     /* last item that went through a transaction */
    size_t worked;        /* items that went through a transaction in this turn */
    bool first_worked;    /* items[0] was among them */
};

/* Pulls up to `limit` due rows of a bucket and collects their keys: those that no
 * worker has died over, or one of the others. Fewer rows when their keys would not fit
 * into one lock call. An item that alone needs more is left out and handed back in
 * *too_large (0: none). The suspect is any of those with the fewest deaths: a sample,
 * so that a worker that dies over one after the other says something about the program
 * and not about the rows. */
MUST_CHECK int batch_pull(struct worker *w,
                          const struct job_type *job,
                          const struct turn_order *order,
                          int64_t *too_large,
                          struct err *e);

/* Makes it a batch of these keys and no items. */
void batch_take_keys(struct batch *b,
                     const int64_t *ids,
                     const unsigned char *kinds,
                     size_t n);

/* Takes the answer of the lock: marks granted keys, then the keys that workable items
 * want. */
void batch_mark_granted(struct batch *b, const struct ll_lock *lock);

/* The same without Redis locks: everything is granted. */
void batch_mark_all(struct batch *b);

/* Ids of wanted keys of a kind, in order, into b->ids; returns how many. */
size_t batch_wanted(struct batch *b, enum resource_kind kind);

/* Items whose every key is granted (and claimed, if `claimed`), into b->work; how many.
 * None after one that is overdue and is not workable. only: just this item, 0: all. */
size_t batch_workable(struct batch *b, bool claimed, int64_t only);

/* Finds a key; NULL if the batch has no such. */
struct batch_key *batch_find(struct batch *b, enum resource_kind kind, int64_t id);

#endif

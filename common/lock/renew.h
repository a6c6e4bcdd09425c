/* renew: types that the two files of the renewer share. The mutex guards the list and
 * its items. A renewal reads only those members of a lock that its thread does not
 * change before ll_renew_forget returns: names, nonce, held keys. */
#ifndef LEDGERLOCK_LOCK_RENEW_H
#define LEDGERLOCK_LOCK_RENEW_H

#include <pthread.h>

#include "common/lock/internal.h"

/* One lock that is renewed, until it is forgotten; it may have ended before (lost). */
struct ll_renewal {
    struct ll_renewal *prev, *next;
    struct ll_renewer *renewer;
    struct ll_lock *lock; /* NULL: forgotten during its renewal */
    int64_t due_ms;       /* time of the next renewal */
    int64_t stop_ms;      /* max_hold: no renewal after this time */
    uint32_t stall_ms;
    uint32_t lease_ms;
    bool ended;     /* lost and reported: nothing more happens to it */
    bool pinned;    /* its renewal is under way: ll_renew_forget waits */
    bool is_orphan; /* forgotten inside on_lost, which cannot wait: dropped later */
    int code;       /* of the last round: LL_OK, LL_LOST, or the fault */
    int64_t deadline_ms; /* of the lease that was asked for */
};

struct ll_renewer {
    struct ll_client *client; /* used by the renewing thread alone */
    struct ll_renew_options o;
    int timer_fd;
    bool has_thread;
    pthread_t thread; /* the thread that renews: ours, or the one in ll_renew_now */
    pthread_mutex_t mutex;
    pthread_cond_t unpinned;
    struct ll_renewal *first;
    int64_t asleep_until_ms; /* 0: awake; a fork would copy a client in use */
    bool closing;
    unsigned failures;                 /* rounds in a row */
    uint64_t rounds, renewals;         /* so far: rounds, and locks renewed in them */
    struct ll_part parts[LL_KEYS_MAX]; /* of one exchange */
    size_t part_ct;
};

/* The thread: renews until r->closing. */
void *ll_renewer_run(void *renewer);

/* The calls below need the mutex. Sets the timer that the thread sleeps on; 0: never.
 */
void ll_renew_arm(const struct ll_renewer *r, int64_t when_ms);

/* Time at which ll_renew_step has something to do; INT64_MAX: no lock is renewed.
 * ll_renew_step reports a loss or renews the due locks, and unlocks the mutex
 * meanwhile. LL_OK, or the fault. */
int64_t ll_renew_next(struct ll_renewer *r);
int ll_renew_step(struct ll_renewer *r);

/* Time between two renewals of a lock. */
int64_t ll_renew_interval(const struct ll_renewer *r, uint32_t lease_ms);

/* Takes an item out of the list and frees it. */
void ll_renew_drop(struct ll_renewer *r, struct ll_renewal *item);

#endif

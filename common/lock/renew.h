/* renew: a renewer, its locks by time, and its steps. A renewal reads only those
 * members of a lock that its thread does not change before rlock_renew_forget returns:
 * names, nonce, held keys. Not installed. */
#ifndef LEDGERLOCK_LOCK_RENEW_H
#define LEDGERLOCK_LOCK_RENEW_H

#include <pthread.h>

#include "common/lock/internal.h"

/* Locks by time: the first is at index 0. */
struct rlock_heap {
    struct rlock_timed {
        int64_t when_ms; /* a copy, since others may change the time of the lock */
        struct rlock *l;
    } * entries;

    size_t n;
    enum rlock_place place; /* of its locks */
};

struct rlock_renewer {
    struct rlock_client *client; /* a copy for the renewing thread, or of the loop: */
    struct rlock_renewer *next, **link; /* of the loop; link NULL: in none */
    struct rlock_renew_options o;
    int timer_fd;
    bool has_thread, has_teller;
    pthread_t thread, teller;  /* renews; calls on_lost */
    pthread_mutex_t mutex;     /* of all below */
    pthread_cond_t idle;       /* a call, or an on_lost, is over */
    pthread_cond_t news;       /* for the teller */
    size_t lock_ct, room;      /* locks in it, and for which the heaps have room */
    struct rlock_heap waiting; /* by the time at which something is to be done */
    struct rlock_heap urgent;  /* due, by the time at which they count as lost */
    struct rlock *untold, **last_untold;
    const struct rlock *told; /* its on_lost runs; NULL: none */
    pthread_t told_by;
    int64_t asleep_until_ms; /* 0: awake */
    bool closing;
    unsigned failures; /* tries in a row */

    /* The try under way: first a connection, then a call for the parts. */
    enum rlock_stage stage;
    struct rlock_gather gather;
    int64_t began_ms;
    struct rlock_part parts[RLOCK_KEYS_MAX];
    struct rlock_kept kept;
    struct rlock_round round;
};

/* The calls below need the mutex. rlock_renew_step finds losses and renews due locks,
 * without waiting: RLOCK_UNDER_WAY while a try is, else RLOCK_OK or its fault.
 * rlock_renew_tell calls the next on_lost; false: there is none. */
int rlock_renew_step(struct rlock_renewer *r);
bool rlock_renew_tell(struct rlock_renewer *r);
/* The time at which a lock is due, or counts as lost, while a try is under way. */
int64_t rlock_renew_next(const struct rlock_renewer *r);
/* Of a renewer without a thread, without the mutex: a step, and the losses. Returns the
 * time at which the next has something to do. */
int64_t rlock_renew_run(struct rlock_renewer *r);
int64_t rlock_renew_interval(const struct rlock_renewer *r, const struct rlock *l);
/* Finds losses, and the locks that are due, which are urgent from then on. */
void rlock_find_due(struct rlock_renewer *r, int64_t now_ms);
bool rlock_may_renew(const struct rlock *l, int64_t now_ms);
void rlock_lose(struct rlock_renewer *r, struct rlock *l, int code);
void rlock_leave_renewer(struct rlock_renewer *r, struct rlock *l);
/* Puts a lock into the heaps. rlock_renew_end takes all out. */
void rlock_renew_put(struct rlock_renewer *r, struct rlock *l);
void rlock_renew_end(struct rlock_renewer *r);
/* Room for one more lock; false: out of memory. */
bool rlock_heap_room(struct rlock_renewer *r);
void rlock_heap_put(struct rlock_heap *h, struct rlock *l, int64_t when_ms);
struct rlock *rlock_heap_take(struct rlock_heap *h, size_t at);

#endif

/* renew: what the files of the renewer share. The list of locks belongs to the mutex;
 * the thread's own fields to the thread; the locks' own fields to their threads, who
 * change nothing that a renewal reads (names, marks, codes) before ll_renew_forget has
 * come back. */
#ifndef LEDGERLOCK_LOCK_RENEW_H
#define LEDGERLOCK_LOCK_RENEW_H

#include <pthread.h>

#include "common/lock/internal.h"

/* One lock that is renewed, until it is forgotten; it may have ended before (lost). */
struct ll_renewal {
    struct ll_renewal *prev, *next;
    struct ll_lock *lock;
    int64_t due_ms;  /* when it is renewed next */
    int64_t stop_ms; /* max_hold: not renewed from here on */
    uint32_t stall_ms;
    uint32_t lease_ms;
    bool ended;     /* lost and told: nothing happens to it any more */
    bool pinned;    /* the thread is at work on it: forgetting waits */
    bool forgotten; /* somebody waits to forget it: nothing is told of it */
    /* of the last round */
    int code;            /* LL_OK, LL_LOST, or the fault */
    int64_t order_ms;    /* local deadline before it */
    int64_t deadline_ms; /* of the lease that was asked for */
};

/* head, not_before, not_after, and of each key its name and at most a mark, a ttl and a
 * count */
enum { LL_RENEW_WORDS = 5 + 4 * LL_KEYS_MAX };

/* Memory of the thread, kept from round to round. */
struct ll_round {
    struct ll_renewal **items; /* earliest deadline first */
    size_t n, size;
    struct ll_part *parts; /* of their keys, in the same order */
    size_t part_ct, part_size;
    struct ll_pipe pipe;
    const char *argv[LL_RENEW_WORDS];
    size_t lens[LL_RENEW_WORDS];
};

struct ll_renewer {
    struct ll_client *client;     /* the thread's alone */
    int64_t connect_ms, reply_ms; /* as the client had them: rounds may allow less */
    uint32_t interval_ms;         /* 0: a third of each lease */
    ll_lost_fn on_lost;
    void *arg;
    int wake_fd, timer_fd, lost_fd;
    bool started;
    pthread_t thread;
    pthread_mutex_t mutex; /* over the list, its items, and the next two */
    pthread_cond_t unpinned;
    struct ll_renewal *first;
    int64_t asleep_until_ms; /* 0: the thread is awake */
    bool closing;
    atomic_bool at_work; /* a fork now would copy the client half changed */
    _Atomic uint64_t rounds, round_trips, renewals;
    _Atomic int64_t slowest_us;
    unsigned failures; /* attempts in a row; the thread's, like the round */
    struct ll_round round;
};

/* The thread: renews until r->closing. */
void *ll_renewer_run(void *renewer);

/* How long after a renewal the next one is due. */
int64_t ll_renew_interval(const struct ll_renewer *r, uint32_t lease_ms);

/* Extends every lock of r->round over the connected client, in one round trip (without
 * scripts two), until limit_ms at most; items[i]->code says what came of each. */
void ll_renew_send(struct ll_renewer *r, int64_t limit_ms);

#endif

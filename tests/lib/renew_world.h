/* renew_world: the lock tests' world with a renewer, and what it told of losses. */
#ifndef LEDGERLOCK_RENEW_WORLD_H
#define LEDGERLOCK_RENEW_WORLD_H

#include "tests/lib/lock_counts.h"
#include "tests/lib/lock_world.h"
#include "tests/lib/proxy.h"

#include <pthread.h>
#include <stdatomic.h>

/* Told to the callback. */
struct told {
    atomic_int times, code;
    _Atomic int64_t least_left_ms; /* until the local deadline, when it was told */
    _Atomic(struct rlock *) last;
};

/* The callback of such renewers; arg is the struct told. */
void note_loss(struct rlock *l, int code, void *arg);

struct rlock_renewer *
open_renewer(struct rlock_client *c, struct told *t, uint32_t interval_ms);

/* Without a thread: its rounds are made by the test, so that it knows when there is
 * none. */
struct rlock_renewer *
open_stepped(struct rlock_client *c, struct told *t, uint32_t interval_ms);

/* Makes a round of all that is due, and tells of losses: RLOCK_OK, or the fault of the
 * round. due: in how many ms there is something to do; -1: no lock is renewed. */
int renew_now(struct rlock_renewer *r);
int64_t renew_due(struct rlock_renewer *r);

/* n locks of client c over keys "NAME:0" and so on, held and renewed. */
void hold_many(struct rlock_client *c,
               struct rlock_renewer *r,
               struct rlock **locks,
               size_t n,
               uint32_t lease_ms);

void free_many(struct rlock **locks, size_t n);

#endif

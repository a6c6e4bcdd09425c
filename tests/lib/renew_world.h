/* renew_world: the lock tests' world with a renewer, and what it told of losses. */
#ifndef LEDGERLOCK_RENEW_WORLD_H
#define LEDGERLOCK_RENEW_WORLD_H

#include "tests/lib/lock_world.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "common/lock/internal.h"

/* What the callback saw. */
struct told {
    atomic_int times, code;
    _Atomic int64_t least_left_ms; /* until the local deadline, when it was told */
    _Atomic(struct ll_lock *) last;
};

static inline void note_loss(struct ll_lock *l, int code, void *arg)
{
    struct told *t = arg;
    int64_t left = l->deadline_ms - ll_now_ms();

    if (t->times == 0 || left < t->least_left_ms)
        t->least_left_ms = left;
    t->code = code;
    t->last = l;
    t->times++;
}

static inline struct ll_renewer *
open_renewer(struct ll_client *c, struct told *t, uint32_t interval_ms)
{
    struct ll_renew_options o = {
        .size = sizeof o, .interval_ms = interval_ms, .on_lost = note_loss, .arg = t};
    struct ll_renewer *r;

    assert_int_equal(ll_renewer_open(&r, c, &o), LL_OK);
    return r;
}

/* User 1 is held by the first lock, user 2 by the second, and both are renewed. */
static inline void
renew_two(struct lock_world *w, struct ll_renewer *r, uint32_t lease_ms)
{
    assert_int_equal(ll_try(w->la, "user:1", lease_ms), LL_OK);
    assert_int_equal(ll_try(w->lb, "user:2", lease_ms), LL_OK);
    assert_int_equal(ll_renew(r, w->la, 0, 0), LL_OK);
    assert_int_equal(ll_renew(r, w->lb, 0, 0), LL_OK);
}

/* Losses that the descriptor has counted, once it is readable; 0 after that time. */
static inline int read_losses(const struct ll_renewer *r, int wait_ms)
{
    struct pollfd p = {.fd = ll_renewer_fd(r), .events = POLLIN};
    uint64_t n = 0;

    if (poll(&p, 1, wait_ms) == 1)
        assert_int_equal(read(p.fd, &n, sizeof n), sizeof n);
    return (int)n;
}

static inline struct ll_renew_figures figures_of(const struct ll_renewer *r)
{
    struct ll_renew_figures f;

    ll_renewer_figures(r, &f);
    return f;
}

/* n locks of client c over keys "NAME:0" and so on, held and renewed. */
static inline void hold_many(struct ll_client *c,
                             struct ll_renewer *r,
                             struct ll_lock **locks,
                             size_t n,
                             uint32_t lease_ms)
{
    char name[32];

    for (size_t i = 0; i < n; i++) {
        locks[i] = ll_new(c);
        (void)snprintf(name, sizeof name, "many:%zu", i);
        assert_int_equal(ll_try(locks[i], name, lease_ms), LL_OK);
        assert_int_equal(ll_renew(r, locks[i], 0, 60000), LL_OK);
    }
}

static inline void free_many(struct ll_lock **locks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ll_free(locks[i]);
}

#endif

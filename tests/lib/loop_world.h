/* loop_world: the loop of a client, run by a test until it was told. */
#ifndef LEDGERLOCK_LOOP_WORLD_H
#define LEDGERLOCK_LOOP_WORLD_H

#include "common/lock/lock_loop.h"
#include "tests/lib/play_inside.h"

/* The outcomes that were told, of all calls of a test. */
struct loop {
    struct rlock_client *c; /* NULL: it is closed */
    int told, code;         /* how often, and the last one */
};

static inline struct loop loop_of(const char *who)
{
    return (struct loop){.c = play_client(who)};
}

static inline void on_done(struct rlock *l, int code, void *arg)
{
    struct loop *loop = arg;

    (void)l;
    loop->told++;
    loop->code = code;
}

static inline void free_lock(struct rlock *l, int code, void *arg)
{
    on_done(l, code, arg);
    rlock_free(l);
}

/* A step, when the descriptor is readable, or after so many milliseconds. */
static inline void loop_step(const struct loop *loop, int ms)
{
    struct pollfd p = {.fd = rlock_loop_fd(loop->c), .events = POLLIN};

    assert_true(p.fd >= 0);
    (void)poll(&p, 1, ms);
    assert_int_equal(rlock_loop_step(loop->c), RLOCK_OK);
}

/* Runs the loop until that is so; no step is made that the descriptor has not asked
 * for. */
#define LOOP_AWAIT(loop, condition)                                                    \
    do {                                                                               \
        int64_t until_ms_ = fixture_now_ms() + LOCK_SOON_MS;                           \
        struct pollfd p_ = {.fd = rlock_loop_fd((loop)->c), .events = POLLIN};         \
                                                                                       \
        while (!(condition)) {                                                         \
            assert_true(fixture_now_ms() < until_ms_);                                 \
            if (poll(&p_, 1, 100) > 0)                                                 \
                assert_int_equal(rlock_loop_step((loop)->c), RLOCK_OK);                \
        }                                                                              \
    } while (0)

/* Begins to take one key: wait_ms 0: a try. */
static inline int
loop_acquire(struct loop *loop, struct rlock *l, const char *name, uint32_t wait_ms)
{
    const struct rlock_key key = {name, strlen(name)};

    return rlock_begin_acquire(l, &key, 1, RLOCK_ALL, PLAY_LEASE_MS, wait_ms, on_done,
                               loop);
}

/* Takes it. */
static inline void loop_take(struct loop *loop, struct rlock *l, const char *name)
{
    int told = loop->told;

    assert_int_equal(loop_acquire(loop, l, name, 0), RLOCK_OK);
    LOOP_AWAIT(loop, loop->told > told);
    assert_int_equal(loop->code, RLOCK_OK);
}

#endif

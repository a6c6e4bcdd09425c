/* form: with LL_TEST_FORM=loop in the environment, the blocking calls of a test
 * are begun in the client's event loop, which runs until they are over: what is true of
 * the one form is true of the other. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/lock_loop.h"
#include "tests/lib/lock_world.h"

#define REAL(name) __real_rlock_##name
#define WRAP(name) __wrap_rlock_##name

#define ACQUIRE                                                                        \
    struct rlock *l, const struct rlock_key *keys, size_t n, enum rlock_mode mode,     \
        uint32_t lease_ms

int REAL(acquire)(ACQUIRE);
int WRAP(acquire)(ACQUIRE);
int REAL(acquire_wait)(ACQUIRE, uint32_t wait_ms, int cancel_fd);
int WRAP(acquire_wait)(ACQUIRE, uint32_t wait_ms, int cancel_fd);
int WRAP(try)(struct rlock *l, const char *name, uint32_t lease_ms);
int WRAP(lock)(struct rlock *l, const char *name, uint32_t lease_ms, uint32_t wait_ms);
int REAL(extend)(struct rlock *l, uint32_t lease_ms);
int WRAP(extend)(struct rlock *l, uint32_t lease_ms);
int REAL(release)(struct rlock *l);
int WRAP(release)(struct rlock *l);

struct outcome {
    bool is_told;
    int code;
};

static bool form_is_loop(void)
{
    const char *form = getenv("LL_TEST_FORM");

    return form != NULL && strcmp(form, "loop") == 0;
}

static void note(struct rlock *l, int code, void *arg)
{
    struct outcome *o = arg;

    (void)l;
    assert_false(o->is_told);
    *o = (struct outcome){true, code};
}

static int run(struct rlock *l, const struct outcome *o, int began, int cancel_fd)
{
    struct rlock_client *c = l->client;
    struct pollfd fds[] = {{.fd = rlock_loop_fd(c), .events = POLLIN},
                           {.fd = cancel_fd > 0 ? cancel_fd : -1, .events = POLLIN}};

    if (began != RLOCK_OK)
        return began;
    assert_false(o->is_told);
    while (!o->is_told) {
        (void)poll(fds, 2, 5000); /* a time that nobody waits for is found missing */
        if (fds[1].revents != 0) {
            rlock_cancel(l);
            fds[1].fd = -1;
        }
        assert_int_equal(rlock_loop_step(c), RLOCK_OK);
    }
    return o->code;
}

int WRAP(acquire)(ACQUIRE)
{
    struct outcome o = {0};

    if (!form_is_loop())
        return REAL(acquire)(l, keys, n, mode, lease_ms);
    return run(l, &o, rlock_begin_acquire(l, keys, n, mode, lease_ms, 0, note, &o), -1);
}

int WRAP(acquire_wait)(ACQUIRE, uint32_t wait_ms, int cancel_fd)
{
    struct outcome o = {0};
    int code;

    if (!form_is_loop() || wait_ms == 0)
        return REAL(acquire_wait)(l, keys, n, mode, lease_ms, wait_ms, cancel_fd);
    code = rlock_begin_acquire(l, keys, n, mode, lease_ms, wait_ms, note, &o);
    return run(l, &o, code, cancel_fd);
}

int WRAP(try)(struct rlock *l, const char *name, uint32_t lease_ms)
{
    struct rlock_key key = {name, strlen(name)};

    return WRAP(acquire)(l, &key, 1, RLOCK_ALL, lease_ms);
}

int WRAP(lock)(struct rlock *l, const char *name, uint32_t lease_ms, uint32_t wait_ms)
{
    struct rlock_key key = {name, strlen(name)};

    return WRAP(acquire_wait)(l, &key, 1, RLOCK_ALL, lease_ms, wait_ms, -1);
}

int WRAP(extend)(struct rlock *l, uint32_t lease_ms)
{
    struct outcome o = {0};

    if (!form_is_loop())
        return REAL(extend)(l, lease_ms);
    return run(l, &o, rlock_begin_extend(l, lease_ms, note, &o), -1);
}

int WRAP(release)(struct rlock *l)
{
    struct outcome o = {0};

    if (!form_is_loop())
        return REAL(release)(l);
    return run(l, &o, rlock_begin_release(l, note, &o), -1);
}

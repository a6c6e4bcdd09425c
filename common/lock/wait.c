/* wait: acquire, with a time limit if it waits. A release pushes a wake-up for a key
 * that has waiters. A wake-up is only a hint: every waiter also tries again by itself.
 */
#include <string.h>

#include "common/lock/operation.h"

enum {
    FIRST_PAUSE_MS = 10,
    LAST_PAUSE_MS = 200,
    GRACE_MS = 40 /* room for an answer under way at the end of the wait */
};

/* ---- pauses ---- */

/* Time until the wanted keys can be free without a release: if all are wanted the
 * longest lease counts, else the shortest. INT64_MAX: the keys have no TTL. */
static int64_t lease_left(const struct rlock_waiting *w)
{
    int64_t left = w->mode == RLOCK_ALL ? 0 : INT64_MAX;

    for (size_t i = 0; i < w->l->n; i++) {
        int64_t ms = w->l->slots[i].busy_ms;

        ms = ms < 0 ? INT64_MAX : ms;
        if (w->l->slots[i].code == RLOCK_BUSY && (ms > left) == (w->mode == RLOCK_ALL))
            left = ms;
    }
    return left == 0 ? INT64_MAX : left; /* no answer named a time */
}

static bool is_cancelled(const struct rlock_waiting *w)
{
    struct pollfd p = {.fd = w->cancel_fd, .events = POLLIN};

    return w->is_cancelled || (w->cancel_fd >= 0 && rlock_poll(&p, 1, 0) > 0);
}

/* Until the key may be free: at most to the end of the holder's lease or of the wait.
 */
static void begin_pause(struct rlock_waiting *w, int64_t left_ms)
{
    struct rlock_client *c = w->l->client;
    int64_t lease_ms = w->code == RLOCK_BUSY ? lease_left(w) : INT64_MAX;
    int64_t limit_ms = rlock_least(lease_ms, left_ms);
    int64_t pause_ms;

    w->listener = (struct rlock_listener){.l = w->l, .mode = w->mode};
    if (w->code == RLOCK_BUSY && w->has_hints && limit_ms > RLOCK_GRAIN_MS) {
        /* a waiter with wake-ups rarely tries by itself */
        pause_ms = LAST_PAUSE_MS / 2 + rlock_jitter_ms(LAST_PAUSE_MS / 2);
        pause_ms = rlock_least(pause_ms, limit_ms - RLOCK_GRAIN_MS);
        w->most_ms = FIRST_PAUSE_MS;
        w->pause_until_ms = w->listener.until_ms = rlock_now_ms() + pause_ms;
        (void)rlock_ears_join(c, &w->listener);
    } else { /* full jitter below a limit that doubles */
        pause_ms = rlock_jitter_ms(w->most_ms);
        pause_ms = rlock_most(rlock_least(pause_ms, limit_ms), 1);
        w->most_ms = rlock_least(w->most_ms * 2, LAST_PAUSE_MS);
        w->pause_until_ms = rlock_now_ms() + pause_ms;
    }
    c->cancel_fd = w->cancel_fd;
    w->stage = RLOCK_PAUSING;
}

/* On the client's connection the answer of BLPOP must come first. */
static bool is_over(struct rlock_waiting *w)
{
    struct rlock_client *c = w->l->client;
    bool is_listening;

    rlock_ears_step(c);
    is_listening = w->listener.state == RLOCK_LISTENING;
    if (w->listener.state == RLOCK_REFUSED)
        w->has_hints = false;
    if (w->listener.state == RLOCK_WOKEN || is_cancelled(w) ||
        rlock_now_ms() >=
            (is_listening && c->ears.own == NULL ? w->end_ms : w->pause_until_ms))
        return true;
    if (!is_listening || c->ears.own != NULL)
        rlock_want(c, w->pause_until_ms);
    else
        rlock_want(c, w->end_ms);
    return false;
}

static void end_pause(struct rlock_waiting *w)
{
    rlock_ears_leave(w->l->client, &w->listener);
    w->l->client->cancel_fd = -1;
    w->stage = RLOCK_BETWEEN;
}

/* ---- attempts ---- */

static bool does_pass(int code)
{
    return code == RLOCK_BUSY || code == RLOCK_E_UNAVAILABLE ||
           code == RLOCK_E_UNCERTAIN || code == RLOCK_E_READONLY ||
           code == RLOCK_E_NO_QUORUM;
}

/* Of a wait, until shortly after its end. */
static int64_t limit_of(const struct rlock_waiting *w)
{
    int64_t limit_ms = rlock_call_end(w->l->client);

    return w->is_single ? limit_ms : rlock_least(limit_ms, w->end_ms + GRACE_MS);
}

static int begin_attempt(struct rlock_waiting *w)
{
    struct rlock *l = w->l;
    int code = w->is_again ? rlock_prepare_again(l) : RLOCK_OK;

    if (code != RLOCK_OK)
        return code;
    l->marks = w->mode == RLOCK_ALL ? 1 : RLOCK_WAKE_KEYS;
    if (w->is_single || !w->has_hints || rlock_now_ms() >= w->end_ms)
        l->marks = 0; /* nobody waits for a wake-up */
    l->is_heir = w->is_again && w->has_hints && l->n <= RLOCK_WAKE_KEYS;
    w->is_again = true;
    w->taking = (struct rlock_taking){.l = l, .mode = w->mode, .lease_ms = w->lease_ms};
    rlock_taking_begin(&w->taking, limit_of(w));
    w->stage = RLOCK_ATTEMPTING;
    return RLOCK_UNDER_WAY;
}

/* Keys that an earlier attempt may have taken would be busy, so they are released
 * first. */
static int step_attempt(struct rlock_waiting *w)
{
    int code = RLOCK_UNDER_WAY;

    if (w->stage == RLOCK_BETWEEN && w->l->uncertain) {
        w->taking.of.giving = (struct rlock_giving){.l = w->l, .limit_ms = limit_of(w)};
        w->stage = RLOCK_RELEASING_EARLIER;
    }
    if (w->stage == RLOCK_RELEASING_EARLIER) {
        code = rlock_giving_step(&w->taking.of.giving);
        if (code == RLOCK_UNDER_WAY || code < 0)
            return code;
    }
    if (w->stage != RLOCK_ATTEMPTING)
        code = begin_attempt(w);
    if (w->stage == RLOCK_ATTEMPTING) {
        code = rlock_taking_step(&w->taking);
        w->l->marks = code == RLOCK_UNDER_WAY ? w->l->marks : 0;
    }
    return code;
}

/* Time until the last attempt must begin: it needs as long as the last round trip. */
static int64_t time_left(const struct rlock_waiting *w)
{
    const struct rlock_client *c = w->l->client;
    int64_t trip_ms = 0;

    for (size_t i = 0; i < c->node_ct; i++)
        trip_ms = rlock_most(trip_ms, c->nodes[i].trip_ms);
    return w->end_ms - rlock_now_ms() - rlock_most(trip_ms + trip_ms / 4 - GRACE_MS, 0);
}

/* Of a wait whose time is over. A last try without time to connect is no fault. */
static int code_at_end(const struct rlock_waiting *w)
{
    struct rlock_client *c = w->l->client;

    if (w->code == RLOCK_E_UNAVAILABLE && w->l->uncertain)
        return rlock_fail(c, RLOCK_E_UNCERTAIN,
                          "the server is gone since a try whose answer was lost");
    if (w->code < 0 && (w->before != RLOCK_BUSY || w->l->uncertain))
        return w->code;
    return rlock_fail_as(c, RLOCK_TIMEOUT);
}

/* After an attempt: the code of all, or RLOCK_UNDER_WAY with a pause. */
static int go_on(struct rlock_waiting *w, int code)
{
    int64_t left_ms = time_left(w);

    w->before = w->code;
    w->code = code;
    if (w->is_single || !does_pass(code))
        return code;
    if (is_cancelled(w))
        return rlock_fail_as(w->l->client, RLOCK_CANCELLED);
    if (left_ms <= 0)
        return code_at_end(w);
    begin_pause(w, left_ms);
    return RLOCK_UNDER_WAY;
}

/* ---- the operation ---- */

int rlock_waiting_begin(struct rlock_waiting *w,
                        struct rlock *l,
                        const struct rlock_key *keys,
                        size_t n,
                        enum rlock_mode mode,
                        uint32_t lease_ms)
{
    int code = rlock_check_op(l);

    if (code == RLOCK_OK)
        code = rlock_check_lease(l, lease_ms);
    if (code == RLOCK_OK)
        code = rlock_check_mode(l, (int)mode, n);
    if (code == RLOCK_OK && rlock_valid(l, 0))
        code = rlock_fail(l->client, RLOCK_E_INVAL,
                          "the lock is held; release or abandon it first");
    if (code == RLOCK_OK)
        code = rlock_prepare(l, keys, n);
    if (code != RLOCK_OK)
        return code;
    *w = (struct rlock_waiting){.l = l,
                                .mode = mode,
                                .lease_ms = lease_ms,
                                .cancel_fd = -1,
                                .is_single = true,
                                .most_ms = FIRST_PAUSE_MS,
                                .has_hints = l->client->kind != RLOCK_QUORUM};
    return RLOCK_UNDER_WAY;
}

void rlock_waiting_allow(struct rlock_waiting *w, uint32_t wait_ms, int cancel_fd)
{
    w->is_single = wait_ms == 0;
    w->end_ms = rlock_now_ms() + wait_ms;
    w->cancel_fd = cancel_fd > 0 ? cancel_fd : -1;
}

int rlock_waiting_step(void *waiting)
{
    struct rlock_waiting *w = waiting;
    int code;

    if (w->is_cancelled && w->stage == RLOCK_ATTEMPTING &&
        rlock_taking_cancel(&w->taking)) {
        w->l->marks = 0;
        return rlock_fail_as(w->l->client, RLOCK_CANCELLED);
    }
    for (;;) {
        if (w->stage == RLOCK_PAUSING) {
            if (!is_over(w))
                return RLOCK_UNDER_WAY;
            end_pause(w);
            if (is_cancelled(w))
                return rlock_fail_as(w->l->client, RLOCK_CANCELLED);
        }
        code = step_attempt(w);
        if (code == RLOCK_UNDER_WAY)
            return code;
        code = go_on(w, code);
        if (code != RLOCK_UNDER_WAY)
            return code;
    }
}

void rlock_waiting_clear(struct rlock_waiting *w)
{
    if (w->stage == RLOCK_PAUSING)
        end_pause(w);
    if (w->stage == RLOCK_RELEASING_EARLIER)
        rlock_giving_clear(&w->taking.of.giving);
    if (w->stage == RLOCK_ATTEMPTING)
        rlock_taking_clear(&w->taking);
    w->l->marks = 0;
}

/* ---- the blocking calls ---- */

static int acquire(struct rlock *l,
                   const struct rlock_key *keys,
                   size_t n,
                   enum rlock_mode mode,
                   uint32_t lease_ms,
                   uint32_t wait_ms,
                   int cancel_fd,
                   int code_if_busy)
{
    struct rlock_event event = {RLOCK_EV_ACQUIRE, .keys = n, .us = rlock_now_us()};
    struct rlock_waiting w;
    int code = rlock_check_owner(l->client);

    if (code != RLOCK_OK)
        return code;
    event.code = rlock_waiting_begin(&w, l, keys, n, mode, lease_ms);
    if (event.code == RLOCK_UNDER_WAY) {
        rlock_waiting_allow(&w, wait_ms, cancel_fd);
        event.code = rlock_drive(l->client, rlock_waiting_step, &w);
    }
    if (event.code == RLOCK_BUSY)
        event.code = rlock_fail_as(l->client, code_if_busy);
    event.granted = l->granted;
    return rlock_leave(l->client, event);
}

int rlock_acquire(struct rlock *l,
                  const struct rlock_key *keys,
                  size_t n,
                  enum rlock_mode mode,
                  uint32_t lease_ms)
{
    return acquire(l, keys, n, mode, lease_ms, 0, -1, RLOCK_BUSY);
}

int rlock_acquire_wait(struct rlock *l,
                       const struct rlock_key *keys,
                       size_t n,
                       enum rlock_mode mode,
                       uint32_t lease_ms,
                       uint32_t wait_ms,
                       int cancel_fd)
{
    return acquire(l, keys, n, mode, lease_ms, wait_ms, cancel_fd, RLOCK_TIMEOUT);
}

int rlock_try(struct rlock *l, const char *name, uint32_t lease_ms)
{
    struct rlock_key key = {name, strlen(name)};

    return rlock_acquire(l, &key, 1, RLOCK_ALL, lease_ms);
}

int rlock_lock(struct rlock *l, const char *name, uint32_t lease_ms, uint32_t wait_ms)
{
    struct rlock_key key = {name, strlen(name)};

    return rlock_acquire_wait(l, &key, 1, RLOCK_ALL, lease_ms, wait_ms, -1);
}

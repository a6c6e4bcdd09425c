/* wait: acquire with a time limit. A release pushes a wake-up for a key that has
 * waiters, and BLPOP gives it to the longest waiter. A wake-up is only a hint: every
 * waiter also tries again by itself. */
#include <stdio.h>
#include <string.h>

#include "common/lock/internal.h"

enum {
    FIRST_PAUSE_MS = 10,
    LAST_PAUSE_MS = 200,
    GRAIN_MS = 100, /* an idle server (hz 10) ends a BLPOP up to this much later */
    GRACE_MS = 40,  /* room for an answer under way at the end of the wait */
    WAKE_KEYS = 16,
    WAKE_NAME = RLOCK_PREFIX_MAX + RLOCK_KEY_MAX + 8
};

/* The state of one wait. */
struct waiter {
    struct rlock_lock *l;
    const struct rlock_key *keys;
    size_t n;
    enum rlock_mode mode;
    uint32_t lease_ms;
    int cancel_fd;
    bool is_waiting; /* false: a single attempt */
    int64_t end_ms;
    int64_t most_ms; /* of the next pause without BLPOP */
    bool has_hints;
};

/* Time until the wanted keys can be free without a release: if all are wanted the
 * longest lease counts, else the shortest. INT64_MAX: the keys have no TTL. */
static int64_t lease_left(const struct waiter *w)
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

/* The keys whose wake lists BLPOP waits for: those that the acquire marked, which have
 * another holder, not free keys that were left with them. */
static size_t pick_listening(const struct waiter *w, size_t *picked)
{
    size_t most = w->mode == RLOCK_ALL ? 1 : WAKE_KEYS;
    size_t n = 0;

    for (size_t i = 0; i < w->l->n && n < most; i++) {
        if (w->l->slots[i].busy_ms != 0)
            picked[n++] = i;
    }
    return n;
}

static void put_listening(const struct waiter *w,
                          const size_t *picked,
                          size_t n,
                          struct rlock_text *t,
                          int64_t pause_ms)
{
    const struct rlock_client *c = w->l->client;
    char name[WAKE_NAME], seconds[24];

    rlock_put_command(t, n + 2);
    rlock_put_word(t, "BLPOP");
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *key = rlock_name(w->l, picked[i], &len);
        size_t at = (size_t)snprintf(name, sizeof name, "%s!wake:", c->prefix);

        memcpy(name + at, key + c->prefix_len, len - c->prefix_len);
        rlock_put(t, name, at + len - c->prefix_len);
    }
    (void)snprintf(seconds, sizeof seconds, "%lld.%03d", (long long)pause_ms / 1000,
                   (int)(pause_ms % 1000));
    rlock_put_word(t, seconds);
}

static void sleep_until(const struct waiter *w, int64_t end_ms)
{
    struct pollfd p = {.fd = w->cancel_fd, .events = POLLIN};

    (void)rlock_poll(&p, 1, end_ms);
}

/* Blocks until a wake-up comes or pause_ms are over. An error in here is no fault of
 * the acquire: the pause is slept to its end, and the next try reports a fault. */
static void listen_for(struct waiter *w, int64_t pause_ms)
{
    struct rlock_client *c = w->l->client;
    struct rlock_node *node = &c->nodes[0];
    struct rlock_ask ask = {.c = c};
    const redisReply *reply = NULL;
    int64_t end_ms = rlock_now_ms() + pause_ms;
    int64_t late_ms = end_ms + GRAIN_MS + c->o.reply_ms;
    size_t picked[WAKE_KEYS];
    size_t n = pick_listening(w, picked);

    if (node->state == RLOCK_UP && !node->is_stale && n > 0) {
        rlock_link_begin(&node->link, &ask.x, 1);
        put_listening(w, picked, n, &node->link.out, pause_ms);
        c->cancel_fd = w->cancel_fd;
        reply = rlock_ask(&ask, rlock_least(late_ms, w->end_ms));
        c->cancel_fd = -1;
    }
    if (reply != NULL) /* an error: maybe a missing right */
        w->has_hints = reply->type != REDIS_REPLY_ERROR;
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY)
        sleep_until(w, end_ms);
    rlock_exchange_clear(&ask.x);
}

/* Pauses until the key may be free: at most to the end of the holder's lease or of the
 * wait. */
static void pause_once(struct waiter *w, int code, int64_t left_ms)
{
    int64_t lease_ms = code == RLOCK_BUSY ? lease_left(w) : INT64_MAX;
    int64_t limit_ms = rlock_least(lease_ms, left_ms);

    if (code == RLOCK_BUSY && w->has_hints && limit_ms > GRAIN_MS) {
        /* a waiter with wake-ups rarely tries by itself */
        int64_t pause_ms = LAST_PAUSE_MS / 2 + rlock_jitter_ms(LAST_PAUSE_MS / 2);

        w->most_ms = FIRST_PAUSE_MS;
        listen_for(w, rlock_least(pause_ms, limit_ms - GRAIN_MS));
    } else { /* full jitter below a limit that doubles */
        int64_t pause_ms = rlock_jitter_ms(w->most_ms);

        w->most_ms = rlock_least(w->most_ms * 2, LAST_PAUSE_MS);
        sleep_until(w, rlock_now_ms() + rlock_most(rlock_least(pause_ms, limit_ms), 1));
    }
}

static bool does_pass(int code)
{
    return code == RLOCK_BUSY || code == RLOCK_E_UNAVAILABLE ||
           code == RLOCK_E_UNCERTAIN || code == RLOCK_E_READONLY ||
           code == RLOCK_E_NO_QUORUM;
}

/* Keys that an earlier attempt may have taken would be busy, so they are released
 * first. An attempt of a wait without time is that of rlock_acquire. */
static int attempt(struct waiter *w)
{
    struct rlock_lock *l = w->l;
    int64_t limit_ms = rlock_call_end(l->client);
    int code = rlock_check_owner(l->client);

    if (code != RLOCK_OK)
        return code;
    if (w->is_waiting)
        limit_ms = rlock_least(limit_ms, w->end_ms + GRACE_MS);
    if (l->uncertain) {
        code = rlock_give_all(l, limit_ms);
        if (code < 0)
            return code;
    }
    l->marks = w->mode == RLOCK_ALL ? 1 : WAKE_KEYS;
    if (!w->has_hints || rlock_now_ms() >= w->end_ms) /* nobody waits for a wake-up */
        l->marks = 0;
    code = rlock_take_all(l, w->keys, w->n, w->mode, w->lease_ms, limit_ms);
    l->marks = 0;
    return code;
}

/* Time until the last attempt must begin: it needs as long as the last round trip. */
static int64_t time_left(const struct waiter *w)
{
    const struct rlock_client *c = w->l->client;
    int64_t trip_ms = 0;

    for (size_t i = 0; i < c->node_ct; i++)
        trip_ms = rlock_most(trip_ms, c->nodes[i].trip_ms);
    return w->end_ms - rlock_now_ms() - rlock_most(trip_ms + trip_ms / 4 - GRACE_MS, 0);
}

static bool is_cancelled(const struct waiter *w)
{
    struct pollfd p = {.fd = w->cancel_fd, .events = POLLIN};

    return rlock_poll(&p, 1, 0) > 0;
}

static int wait_for(struct waiter *w)
{
    int before, code = RLOCK_OK;

    for (;;) {
        int64_t left_ms;

        before = code;
        code = attempt(w);
        left_ms = time_left(w);
        if (!does_pass(code))
            return code;
        if (left_ms > 0 && !is_cancelled(w))
            pause_once(w, code, left_ms);
        if (is_cancelled(w))
            return rlock_fail_as(w->l->client, RLOCK_CANCELLED);
        if (left_ms > 0)
            continue;
        if (code == RLOCK_E_UNAVAILABLE && w->l->uncertain)
            return rlock_fail(w->l->client, RLOCK_E_UNCERTAIN,
                              "the server is gone since a try whose answer was lost");
        if (code < 0 && (before != RLOCK_BUSY || w->l->uncertain))
            return code;
        /* a last try without time to connect is no fault */
        return rlock_fail_as(w->l->client, RLOCK_TIMEOUT);
    }
}

int rlock_acquire_wait(struct rlock_lock *l,
                       const struct rlock_key *keys,
                       size_t n,
                       enum rlock_mode mode,
                       uint32_t lease_ms,
                       uint32_t wait_ms,
                       int cancel_fd)
{
    int64_t began_us = rlock_now_us();
    struct waiter w = {.l = l,
                       .keys = keys,
                       .n = n,
                       .mode = mode,
                       .lease_ms = lease_ms,
                       .cancel_fd = cancel_fd > 0 ? cancel_fd : -1,
                       .is_waiting = wait_ms > 0,
                       .end_ms = rlock_now_ms() + wait_ms,
                       .most_ms = FIRST_PAUSE_MS,
                       .has_hints = l->client->kind != RLOCK_QUORUM};
    int code;

    l->uncertain = false; /* keys of an earlier acquire end with their lease */
    code = wait_for(&w);
    return rlock_leave(l->client, (struct rlock_event){RLOCK_EV_ACQUIRE, code, n,
                                                       l->granted, began_us});
}

int rlock_lock(struct rlock_lock *l,
               const char *name,
               uint32_t lease_ms,
               uint32_t wait_ms)
{
    struct rlock_key key = {name, strlen(name)};

    return rlock_acquire_wait(l, &key, 1, RLOCK_ALL, lease_ms, wait_ms, -1);
}

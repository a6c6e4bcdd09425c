/* wait: acquire with a time limit. A release pushes a wake-up for a key that is waited
 * for, and BLPOP hands it to the waiter that came first; it is only a hint, so every
 * waiter also looks by itself. */
#define _DEFAULT_SOURCE
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "common/lock/internal.h"

enum {
    FIRST_PAUSE_MS = 10,
    LAST_PAUSE_MS = 200,
    GRAIN_MS = 100, /* an idle server (hz 10) ends a BLPOP up to this much later */
    WAKE_KEYS = 16,
    WAKE_NAME = LL_PREFIX_MAX + LL_KEY_MAX + 8
};

/* How one call waits. */
struct waiter {
    struct ll_lock *l;
    enum ll_mode mode;
    int64_t end_ms;
    int64_t most_ms; /* of the next pause without listening */
    bool has_hints;
};

void ll_sleep_ms(int64_t ms)
{
    int64_t end_ms = ll_now_ms() + (ms < 1 ? 1 : ms);
    int64_t left;

    while ((left = end_ms - ll_now_ms()) > 0)
        (void)poll(NULL, 0, left > 60000 ? 60000 : (int)left);
}

int64_t ll_jitter_ms(int64_t most_ms)
{
    uint32_t random = 0;

    if (most_ms <= 1 || getrandom(&random, sizeof random, 0) != sizeof random)
        return most_ms <= 1 ? 1 : most_ms;
    return 1 + (int64_t)(random % (uint64_t)most_ms);
}

/* Time until the wanted keys can be free without a release: for all of them the longest
 * lease counts, for any the shortest. INT64_MAX: they have no end. */
static int64_t lease_left(const struct waiter *w)
{
    int64_t left = w->mode == LL_ALL ? 0 : INT64_MAX;

    for (size_t i = 0; i < w->l->n; i++) {
        int64_t ms = w->l->slots[i].busy_ms;

        ms = ms < 0 ? INT64_MAX : ms;
        if (w->l->slots[i].code == LL_BUSY && (ms > left) == (w->mode == LL_ALL))
            left = ms;
    }
    return left;
}

/* Full jitter below a limit that doubles. */
static int64_t next_pause(struct waiter *w, int64_t limit_ms)
{
    int64_t pause_ms = ll_jitter_ms(w->most_ms);

    w->most_ms = w->most_ms * 2 < LAST_PAUSE_MS ? w->most_ms * 2 : LAST_PAUSE_MS;
    return pause_ms < limit_ms ? pause_ms : limit_ms;
}

/* A waiter that will be woken looks by itself only now and then. */
static int64_t next_listening(struct waiter *w, int64_t limit_ms)
{
    int64_t pause_ms = LAST_PAUSE_MS / 2 + ll_jitter_ms(LAST_PAUSE_MS / 2);

    w->most_ms = FIRST_PAUSE_MS;
    return pause_ms < limit_ms ? pause_ms : limit_ms;
}

/* BLPOP on the wake lists of the keys that the acquire call has marked: the ones that
 * somebody holds, not those that were only not taken with them. */
static int wake_words(const struct waiter *w,
                      char names[WAKE_KEYS][WAKE_NAME],
                      const char **argv,
                      size_t *lens)
{
    const struct ll_client *c = w->l->client;
    size_t most = w->mode == LL_ALL ? 1 : WAKE_KEYS;
    size_t n = 0;

    argv[0] = "BLPOP";
    lens[0] = strlen(argv[0]);
    for (size_t i = 0; i < w->l->n && n < most; i++) {
        size_t len, at;
        const char *name;

        if (w->l->slots[i].busy_ms == 0)
            continue;
        name = ll_name(w->l, i, &len);
        at = (size_t)snprintf(names[n], WAKE_NAME, "%s!wake:", c->prefix);
        memcpy(names[n] + at, name + c->prefix_len, len - c->prefix_len);
        argv[1 + n] = names[n];
        lens[1 + n] = at + len - c->prefix_len;
        n++;
    }
    return (int)n + 1;
}

/* Blocks until a wake-up comes or pause_ms are over. Whatever goes wrong here is no
 * fault of the acquire: the pause is slept to its end, and the next look tells. */
static void listen_for(struct waiter *w, int64_t pause_ms)
{
    struct ll_client *c = w->l->client;
    int64_t end_ms = ll_now_ms() + pause_ms;
    char names[WAKE_KEYS][WAKE_NAME];
    const char *argv[WAKE_KEYS + 2];
    size_t lens[WAKE_KEYS + 2];
    char seconds[24];
    redisReply *reply;
    int argc = wake_words(w, names, argv, lens);
    bool is_woken = false;

    argv[argc] = seconds;
    lens[argc++] = (size_t)snprintf(seconds, sizeof seconds, "%lld.%03d",
                                    (long long)pause_ms / 1000, (int)(pause_ms % 1000));
    if (argc > 2 && c->nodes[0].conn != NULL &&
        ll_command(c, &c->nodes[0], argc, argv, lens, end_ms + c->reply_ms, &reply) ==
            LL_OK) {
        is_woken = reply->type == REDIS_REPLY_ARRAY;
        w->has_hints = reply->type != REDIS_REPLY_ERROR; /* not allowed, perhaps */
        freeReplyObject(reply);
    }
    if (!is_woken && ll_now_ms() < end_ms)
        ll_sleep_ms(end_ms - ll_now_ms());
}

/* Until something may have changed, at most to the end of the holder's lease or of the
 * wait. */
static void pause_once(struct waiter *w, int64_t left_ms)
{
    int64_t lease_ms = lease_left(w);
    int64_t limit_ms = lease_ms < left_ms ? lease_ms : left_ms;

    if (w->has_hints && limit_ms > GRAIN_MS)
        listen_for(w, next_listening(w, limit_ms - GRAIN_MS));
    else
        ll_sleep_ms(next_pause(w, limit_ms));
}

int ll_acquire_wait(struct ll_lock *l,
                    const struct ll_key *keys,
                    size_t n,
                    enum ll_mode mode,
                    uint32_t lease_ms,
                    uint32_t wait_ms)
{
    struct ll_client *c = l->client;
    struct waiter w = {.l = l,
                       .mode = mode,
                       .end_ms = ll_now_ms() + wait_ms,
                       .most_ms = FIRST_PAUSE_MS,
                       .has_hints = c->node_ct == 1 && !c->no_scripts};

    for (;;) {
        int64_t left_ms = w.end_ms - ll_now_ms();
        int code;

        if (w.has_hints && left_ms > GRAIN_MS)
            l->marks = mode == LL_ALL ? 1 : WAKE_KEYS;
        code = ll_acquire(l, keys, n, mode, lease_ms);
        l->marks = 0;
        if (code != LL_BUSY)
            return code;
        left_ms = w.end_ms - ll_now_ms();
        if (left_ms <= 0)
            return ll_fail(c, LL_TIMEOUT, "%s", ll_strerror(LL_TIMEOUT));
        pause_once(&w, left_ms);
    }
}

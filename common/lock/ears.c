/* ears: wake-ups for waiting acquires. A release pushes one into the list of a key that
 * is waited for, and BLPOP, one for all waiters of a client, hears it. In a loop the
 * connection is of its own, since BLPOP holds up what comes behind it; a blocking call,
 * which has nothing else to send, uses that of the client. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/operation.h"

enum {
    GRAIN_MS = RLOCK_GRAIN_MS,
    KEYS_MAX = 64, /* in one BLPOP */
    AGAIN_MS = 200 /* pause between tries to connect */
};

/* ---- the keys of a waiter ---- */

/* The keys that the acquire marked, which have another holder, not free keys that were
 * left with them; all of them are to be free, so one is enough. */
static size_t pick(const struct rlock_listener *w, size_t *picked, size_t most)
{
    size_t n = 0;

    most = w->mode == RLOCK_ALL ? 1 : most;
    for (size_t i = 0; i < w->l->n && n < most; i++) {
        if (w->l->slots[i].busy_ms != 0)
            picked[n++] = i;
    }
    return n;
}

/* ---- joining and leaving ---- */

bool rlock_ears_join(struct rlock_client *c, struct rlock_listener *w)
{
    struct rlock_ears *e = &c->ears;
    struct rlock_listener **last = &e->first;
    size_t one;

    if (pick(w, &one, 1) == 0)
        return false;
    if (e->own == NULL && c->loop != NULL)
        e->own = calloc(1, sizeof *e->own);
    if (e->own == NULL && (c->nodes[0].state != RLOCK_UP || c->nodes[0].is_stale))
        return false;
    while (*last != NULL)
        last = &(*last)->next;
    *last = w;
    w->link = last;
    w->next = NULL;
    w->is_heard = false;
    w->state = RLOCK_LISTENING;
    return true;
}

static void leave(struct rlock_listener *w, enum rlock_hint state)
{
    *w->link = w->next;
    if (w->next != NULL)
        w->next->link = w->link;
    w->state = state;
}

static struct rlock_node *node_of(struct rlock_client *c)
{
    return c->ears.own != NULL ? c->ears.own : &c->nodes[0];
}

/* On the client's connection the answer would stand before that of the next command. */
void rlock_ears_leave(struct rlock_client *c, struct rlock_listener *w)
{
    struct rlock_ears *e = &c->ears;

    if (w->state != RLOCK_LISTENING)
        return;
    leave(w, RLOCK_DEAF);
    if (e->own == NULL && e->x.code == RLOCK_UNDER_WAY)
        rlock_node_close(node_of(c));
}

/* ---- a BLPOP ---- */

/* Chooses the waiters that fit, and the keys of them. */
static size_t count_keys(struct rlock_ears *e, int64_t *until_ms)
{
    size_t picked[RLOCK_WAKE_KEYS], n = 0;

    for (struct rlock_listener *w = e->first; w != NULL; w = w->next) {
        size_t more = pick(w, picked, RLOCK_WAKE_KEYS);

        w->is_heard = n + more <= KEYS_MAX;
        n += w->is_heard ? more : 0;
        if (w->is_heard)
            *until_ms = rlock_most(*until_ms, w->until_ms);
    }
    return n;
}

static void ask(struct rlock_client *c)
{
    struct rlock_ears *e = &c->ears;
    struct rlock_node *node = node_of(c);
    struct rlock_text *t = &node->link.out;
    int64_t until_ms = 0, pause_ms;
    char name[RLOCK_WAKE_NAME], seconds[24];
    size_t picked[RLOCK_WAKE_KEYS];
    size_t keys = count_keys(e, &until_ms);
    bool is_short;

    pause_ms = rlock_most(until_ms - rlock_now_ms(), 1);
    e->until_ms = rlock_now_ms() + pause_ms + GRAIN_MS + c->o.reply_ms;
    rlock_link_begin(&node->link, &e->x, 1);
    rlock_put_command(t, keys + 2);
    rlock_put_word(t, "BLPOP");
    for (const struct rlock_listener *w = e->first; w != NULL; w = w->next) {
        size_t n = w->is_heard ? pick(w, picked, RLOCK_WAKE_KEYS) : 0;

        for (size_t i = 0; i < n; i++)
            rlock_put(t, name, rlock_wake_name(w->l, picked[i], name));
    }
    (void)snprintf(seconds, sizeof seconds, "%lld.%03d", (long long)pause_ms / 1000,
                   (int)(pause_ms % 1000));
    rlock_put_word(t, seconds);
    is_short = t->is_short;
    rlock_node_send(c, node);
    if (is_short)
        e->x.code = RLOCK_E_NOMEM;
}

static bool waits_for(const struct rlock_listener *w, const redisReply *list)
{
    char name[RLOCK_WAKE_NAME];
    size_t picked[RLOCK_WAKE_KEYS];
    size_t n = pick(w, picked, RLOCK_WAKE_KEYS);

    for (size_t i = 0; i < n; i++) {
        size_t len = rlock_wake_name(w->l, picked[i], name);

        if (list->len == len && memcmp(list->str, name, len) == 0)
            return true;
    }
    return false;
}

/* The first that waits for the key of a wake-up, also if it has joined since; the
 * others go on listening. */
static void wake(struct rlock_ears *e, const redisReply *list)
{
    for (struct rlock_listener *w = e->first; w != NULL; w = w->next) {
        if (waits_for(w, list)) {
            leave(w, RLOCK_WOKEN);
            return;
        }
    }
}

/* An error may be a missing right. Anything else but a wake-up is no fault of the
 * acquire: the pause goes on to its end, and the next try reports a fault. */
static void read_answer(struct rlock_ears *e)
{
    const redisReply *reply = e->x.code == RLOCK_OK ? e->x.replies[0] : NULL;
    bool is_error = reply != NULL && reply->type == REDIS_REPLY_ERROR;
    bool is_elsewhere =
        is_error && (rlock_is_error(reply, "MOVED ") || rlock_is_error(reply, "ASK ") ||
                     rlock_is_error(reply, "READONLY"));
    struct rlock_listener *next;

    if (reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
        reply->element[0]->type == REDIS_REPLY_STRING) {
        wake(e, reply->element[0]);
    } else {
        for (struct rlock_listener *w = e->first; w != NULL; w = next) {
            next = w->next;
            if (w->is_heard)
                leave(w, is_error && !is_elsewhere ? RLOCK_REFUSED : RLOCK_DEAF);
        }
    }
    rlock_exchange_clear(&e->x);
    e->x.code = RLOCK_OK;
    e->is_asked = false;
    if (is_elsewhere && e->own != NULL) /* it follows the client's connection */
        rlock_node_close(e->own);
}

/* ---- steps ---- */

/* True if the connection can be used now. */
static bool is_up(struct rlock_client *c)
{
    struct rlock_ears *e = &c->ears;
    int64_t now_ms = rlock_now_ms();

    if (e->own == NULL)
        return c->nodes[0].state == RLOCK_UP;
    rlock_node_tick(c, e->own);
    if (e->own->state == RLOCK_DOWN && now_ms >= e->again_ms &&
        c->nodes[0].state == RLOCK_UP) {
        e->own->address = c->nodes[0].address;
        e->own->redirects = 0;
        e->again_ms = now_ms + AGAIN_MS;
        rlock_node_start(c, e->own, now_ms + c->o.connect_ms);
    }
    return e->own->state == RLOCK_UP;
}

void rlock_ears_step(struct rlock_client *c)
{
    struct rlock_ears *e = &c->ears;

    if (e->is_asked && e->x.code == RLOCK_UNDER_WAY && rlock_now_ms() >= e->until_ms)
        rlock_node_close(node_of(c));
    if (e->is_asked && e->x.code != RLOCK_UNDER_WAY)
        read_answer(e);
    if (!e->is_asked && e->first != NULL && is_up(c)) {
        e->is_asked = true;
        ask(c);
    }
    if (e->is_asked)
        rlock_want(c, e->until_ms);
}

void rlock_ears_close(struct rlock_client *c)
{
    struct rlock_ears *e = &c->ears;

    if (e->is_asked && e->x.code == RLOCK_UNDER_WAY)
        rlock_link_forget(&node_of(c)->link, &e->x);
    rlock_exchange_clear(&e->x);
    if (e->own != NULL)
        rlock_node_free(e->own);
    free(e->own);
    *e = (struct rlock_ears){0};
}

/* base: helpers for all other files: error texts, clocks, begin and end of a call with
 * its hook, sets of nodes, clients beside each other. */
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/lock/connection.h"

/* A node has this long to answer, or a twentieth of the lease if that is longer. */
enum { NODE_LEAST_MS = 100 };

const char *rlock_strerror(int code)
{
#define RLOCK_SENTENCE(name, value, sentence)                                          \
    case name:                                                                         \
        return sentence;

    switch (code) {
        RLOCK_CODES(RLOCK_SENTENCE)
    default:
        return "unknown code";
    }
#undef RLOCK_SENTENCE
}

const char *rlock_version(void)
{
    return RLOCK_VERSION;
}

int rlock_fail(struct rlock_client *c, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(c->error, sizeof c->error, fmt, ap);
    va_end(ap);
    for (size_t i = 0; code == RLOCK_E_PROTO && i < c->node_ct; i++)
        c->nodes[i].is_stale = true;
    return code;
}

/* Behind an answer that makes no sense, none is known to belong to its command. */
int rlock_fail_at(
    struct rlock_client *c, struct rlock_node *node, int code, const char *fmt, ...)
{
    const struct rlock_address *at = &node->address;
    char port[16] = "";
    va_list ap;
    int n;

    if (!at->is_unix)
        (void)snprintf(port, sizeof port, ":%d", at->port);
    n = snprintf(c->error, sizeof c->error, "Redis at %.150s%s", at->host, port);
    va_start(ap, fmt);
    (void)vsnprintf(c->error + n, sizeof c->error - (size_t)n, fmt, ap);
    va_end(ap);
    node->is_stale = node->is_stale || code == RLOCK_E_PROTO;
    return code;
}

int rlock_fail_as(struct rlock_client *c, int code)
{
    return rlock_fail(c, code, "%s", rlock_strerror(code));
}

const char *rlock_error(const struct rlock_client *c)
{
    return c->error;
}

/* ---- time ---- */

/* poll does not count the time that the machine sleeps. */
int rlock_poll(struct pollfd *fds, size_t n, int64_t until_ms)
{
    int got;

    do {
        int64_t left_ms =
            rlock_least(rlock_most(until_ms - rlock_now_ms(), 0), RLOCK_TICK_MS);

        got = poll(fds, (nfds_t)n, (int)left_ms);
    } while (got <= 0 && rlock_now_ms() < until_ms);
    return got > 0 ? got : 0;
}

void rlock_set_timer(const struct rlock_client *c)
{
    if (c->loop != NULL)
        rlock_timer_set(c->loop->timer_fd, c->want_ms);
}

void rlock_ring(struct rlock_client *c)
{
    rlock_want(c, 0);
    rlock_set_timer(c);
}

int64_t rlock_jitter_ms(int64_t most_ms)
{
    uint32_t random = 0;

    if (most_ms <= 1 || !rlock_random(&random, sizeof random))
        return most_ms <= 1 ? 1 : most_ms;
    return 1 + (int64_t)(random % (uint64_t)most_ms);
}

/* ---- nodes ---- */

unsigned rlock_up_nodes(const struct rlock_client *c)
{
    unsigned who = 0;

    for (size_t i = 0; i < c->node_ct; i++)
        who |= c->nodes[i].state == RLOCK_UP ? 1U << i : 0;
    return who;
}

int64_t rlock_node_ms(const struct rlock_client *c, uint32_t lease_ms)
{
    return c->o.reply_ms > 0 ? c->o.reply_ms : rlock_most(lease_ms / 20, NODE_LEAST_MS);
}

/* ---- clients ---- */

static bool is_same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

bool rlock_is_alike(const struct rlock_client *a, const struct rlock_client *b)
{
    return is_same(a->o.url, b->o.url) && strcmp(a->prefix, b->prefix) == 0 &&
           a->o.connect == b->o.connect && a->o.connect_arg == b->o.connect_arg;
}

/* ---- begin and end of a call ---- */

/* Forks that lie between this process and the program's first one: a child in another
 * pid namespace may have its parent's number. */
static atomic_uint forks;

static void count_fork(void)
{
    forks++;
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, count_fork);
}

struct rlock_owner rlock_this_process(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, watch_forks);
    return (struct rlock_owner){getpid(), forks};
}

bool rlock_is_owner(const struct rlock_client *c)
{
    return c->owner.forks == forks && c->owner.pid == getpid();
}

int rlock_check_owner(struct rlock_client *c)
{
    return rlock_is_owner(c) ? RLOCK_OK : rlock_fail_as(c, RLOCK_E_FORKED);
}

int64_t rlock_call_end(const struct rlock_client *c)
{
    int64_t reply_ms = c->o.reply_ms > 0
                           ? c->o.reply_ms
                           : 3 * rlock_node_ms(c, (uint32_t)c->o.max_lease_ms);

    return rlock_now_ms() + c->o.connect_ms + reply_ms;
}

int rlock_leave(struct rlock_client *c, struct rlock_event event)
{
    if (event.code != RLOCK_OK && event.code != RLOCK_PARTIAL)
        event.granted = 0; /* the keys held are from an earlier call */
    if (event.code > 0)
        (void)rlock_fail_as(c, event.code);
    event.us = rlock_now_us() - event.us;
    if (c->o.on_event != NULL)
        c->o.on_event(&event, c->o.event_arg);
    return event.code;
}

void rlock_note_token(struct rlock_client *c, int64_t token)
{
    if (token > c->floor && token < RLOCK_TOKEN_END - 1)
        c->floor = token;
}

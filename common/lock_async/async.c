/* async: the calls for event loops: attaches a redisAsyncContext, and begins an
 * acquire, an extend or a release that ends with a callback. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock_async/async.h"

/* ---- the end of a connection ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static struct rlock_async *first;

/* The next connection of the same adapter, from a on. */
static struct rlock_async *of_adapter(struct rlock_async *a, const void *adapter)
{
    while (a != NULL && a->adapter != adapter)
        a = a->next;
    return a;
}

static void unlink_it(struct rlock_async *a)
{
    if (a->link == NULL)
        return;
    *a->link = a->next;
    if (a->next != NULL)
        a->next->link = a->link;
    a->link = NULL;
}

/* hiredis calls it in place of the adapter's, before it frees the context. */
static void on_end(void *adapter)
{
    void (*clean_up)(void *adapter) = NULL;
    struct rlock_async *a;

    (void)pthread_mutex_lock(&mutex);
    while ((a = of_adapter(first, adapter)) != NULL) {
        clean_up = a->clean_up;
        a->ac = NULL;
        a->is_over = true;
        unlink_it(a);
    }
    (void)pthread_mutex_unlock(&mutex);
    if (clean_up != NULL)
        clean_up(adapter);
}

/* Several clients may use a connection. */
static void watch(struct rlock_async *a)
{
    struct rlock_async *other;

    (void)pthread_mutex_lock(&mutex);
    a->adapter = a->ac->ev.data;
    a->clean_up = a->ac->ev.cleanup;
    other = of_adapter(first, a->adapter);
    if (other != NULL)
        a->clean_up = other->clean_up;
    a->ac->ev.cleanup = on_end;
    a->next = first;
    a->link = &first;
    if (first != NULL)
        first->link = &a->next;
    first = a;
    (void)pthread_mutex_unlock(&mutex);
}

static void unwatch(struct rlock_async *a)
{
    (void)pthread_mutex_lock(&mutex);
    unlink_it(a);
    if (a->ac != NULL && of_adapter(first, a->adapter) == NULL)
        a->ac->ev.cleanup = a->clean_up;
    a->ac = NULL;
    (void)pthread_mutex_unlock(&mutex);
}

/* ---- attaching ---- */

/* Used when the client is closed or attached to another connection. */
static void detach(struct rlock_client *c)
{
    if (c->async != NULL)
        unwatch(c->async);
    rlock_async_leave(c->async);
    c->async = NULL;
}

/* Used when the lock is freed or abandoned: its callback is not called any more. */
static void forget(struct rlock_lock *l)
{
    l->async_call->l = NULL;
    l->async_call = NULL;
}

int rlock_async_attach(struct rlock_client *c, struct redisAsyncContext *ac)
{
    struct rlock_async *a;
    struct rlock_node *node;
    int code = rlock_check_owner(c);

    if (code == RLOCK_OK && (c->kind == RLOCK_QUORUM || c->o.replicas > 0))
        code = rlock_fail(c, RLOCK_E_INVAL,
                          "an event loop has neither quorum nor replicas");
    if (code == RLOCK_OK && ac != NULL && ac->err != 0)
        code = rlock_fail(c, RLOCK_E_UNAVAILABLE, "%s", ac->errstr);
    if (code == RLOCK_OK)
        detach(c);
    if (code != RLOCK_OK || ac == NULL)
        return code;
    a = calloc(1, sizeof *a);
    if (a == NULL)
        return rlock_fail_as(c, RLOCK_E_NOMEM);
    *a = (struct rlock_async){.ac = ac, .users = 1, .handshake.a = a};
    a->own.node_ct = 1; /* like c, but for one server, where the caller has logged in */
    a->own.o.reply_ms = c->o.reply_ms;
    a->own.o.allow_eviction = c->o.allow_eviction;
    memcpy(a->own.prefix, c->prefix, sizeof c->prefix);
    memcpy(a->own.last_key, c->last_key, sizeof c->last_key);
    node = &a->own.nodes[0];
    (void)strcpy(node->address.host, "the loop's connection");
    node->info_ct = 1;
    watch(a);
    c->async = a;
    c->async_detach = detach;
    c->async_forget = forget;
    return RLOCK_OK;
}

/* ---- the calls ---- */

static int check(struct rlock_lock *l, const struct rlock_async_call *q)
{
    struct rlock_client *c = l->client;
    bool may_hold = q->kind == RLOCK_EV_EXTEND
                        ? l->granted > 0 && !l->released && !l->releasing
                        : !l->released && (l->granted > 0 || l->uncertain);
    int code = rlock_check_owner(c);

    if (code != RLOCK_OK)
        return code;
    if (l->async_call != NULL)
        return rlock_fail(c, RLOCK_E_INVAL, "a call of this lock is under way");
    if (q->kind == RLOCK_EV_ACQUIRE ? rlock_valid(l, 0) : !may_hold)
        return rlock_fail(c, RLOCK_E_INVAL, "the lock is held, or is not");
    if (q->kind == RLOCK_EV_EXTEND && l->lost)
        return rlock_fail_as(c, RLOCK_LOST);
    if (c->async == NULL || c->async->is_over)
        return rlock_fail(c, RLOCK_E_UNAVAILABLE,
                          "the client is attached to no connection");
    code = q->kind == RLOCK_EV_RELEASE ? RLOCK_OK : rlock_check_lease(l, q->lease_ms);
    return code == RLOCK_OK ? rlock_check_mode(l, (int)q->mode) : code;
}

static int begin(struct rlock_async_call q, const struct rlock_key *keys, size_t n)
{
    struct rlock_client *c = q.l->client;
    struct rlock_async_call *call;
    int code = check(q.l, &q);

    if (code == RLOCK_OK && q.kind == RLOCK_EV_ACQUIRE)
        code = rlock_prepare(q.l, keys, n);
    if (code != RLOCK_OK)
        return code;
    if (q.kind == RLOCK_EV_RELEASE)
        rlock_renew_forget(q.l);
    q.a = c->async;
    q.began_us = rlock_now_us();
    call = malloc(sizeof *call);
    if (call == NULL)
        return rlock_fail_as(c, RLOCK_E_NOMEM);
    *call = q;
    code = rlock_async_submit(call);
    if (code == RLOCK_OK) {
        q.l->async_call = call;
        return RLOCK_OK;
    }
    free(call);
    return rlock_fail(c, code, "%s", c->async->own.error);
}

int rlock_async_acquire(struct rlock_lock *l,
                        const struct rlock_key *keys,
                        size_t n,
                        enum rlock_mode mode,
                        uint32_t lease_ms,
                        rlock_done_fn done,
                        void *arg)
{
    struct rlock_async_call q = {RLOCK_EV_ACQUIRE, mode, lease_ms, done, arg, .l = l};

    return begin(q, keys, n);
}

int rlock_async_extend(struct rlock_lock *l,
                       uint32_t lease_ms,
                       rlock_done_fn done,
                       void *arg)
{
    struct rlock_async_call q = {RLOCK_EV_EXTEND, RLOCK_ALL, lease_ms, done, arg,
                                 .l = l};

    return begin(q, NULL, 0);
}

int rlock_async_release(struct rlock_lock *l, rlock_done_fn done, void *arg)
{
    struct rlock_async_call q = {RLOCK_EV_RELEASE, RLOCK_ALL, 0, done, arg, .l = l};

    return begin(q, NULL, 0);
}

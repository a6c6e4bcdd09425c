/* async: the calls for event loops: attaches a redisAsyncContext, and begins an
 * acquire, an extend or a release that ends with a callback. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock_async/async.h"

/* ---- the end of a connection ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static struct ll_async *first;

/* The next connection of the same adapter, from a on. */
static struct ll_async *of_adapter(struct ll_async *a, const void *adapter)
{
    while (a != NULL && a->adapter != adapter)
        a = a->next;
    return a;
}

static void unlink_it(struct ll_async *a)
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
    struct ll_async *a;

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
static void watch(struct ll_async *a)
{
    struct ll_async *other;

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

static void unwatch(struct ll_async *a)
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
static void detach(struct ll_client *c)
{
    if (c->async != NULL)
        unwatch(c->async);
    ll_async_leave(c->async);
    c->async = NULL;
}

/* Used when the lock is freed or abandoned: its callback is not called any more. */
static void forget(struct ll_lock *l)
{
    l->async_call->l = NULL;
    l->async_call = NULL;
}

int ll_async_attach(struct ll_client *c, struct redisAsyncContext *ac)
{
    struct ll_async *a;
    struct ll_node *node;
    int code = ll_check_owner(c);

    if (code == LL_OK && (c->kind == LL_QUORUM || c->o.replicas > 0))
        code = ll_fail(c, LL_E_INVAL, "an event loop has neither quorum nor replicas");
    if (code == LL_OK && ac != NULL && ac->err != 0)
        code = ll_fail(c, LL_E_UNAVAILABLE, "%s", ac->errstr);
    if (code == LL_OK)
        detach(c);
    if (code != LL_OK || ac == NULL)
        return code;
    a = calloc(1, sizeof *a);
    if (a == NULL)
        return ll_fail_as(c, LL_E_NOMEM);
    *a = (struct ll_async){.ac = ac, .users = 1, .handshake.a = a};
    a->own.node_ct = 1; /* like c, but for one server, where the caller has logged in */
    a->own.limit_ms = INT64_MAX;
    a->own.o.reply_ms = c->o.reply_ms;
    a->own.o.allow_eviction = c->o.allow_eviction;
    memcpy(a->own.prefix, c->prefix, sizeof c->prefix);
    memcpy(a->own.last_key, c->last_key, sizeof c->last_key);
    node = &a->own.nodes[0];
    (void)strcpy(node->address.host, "the loop's connection");
    ll_talk_begin(node, SHAKE_CT); /* allocates room for all later answers */
    watch(a);
    c->async = a;
    c->async_detach = detach;
    c->async_forget = forget;
    if (!node->out.is_short)
        return LL_OK;
    detach(c);
    return ll_fail_as(c, LL_E_NOMEM);
}

/* ---- the calls ---- */

static int check(struct ll_lock *l, const struct ll_async_call *q)
{
    struct ll_client *c = l->client;
    bool may_hold = q->kind == LL_EV_EXTEND
                        ? l->granted > 0 && !l->released && !l->releasing
                        : !l->released && (l->granted > 0 || l->uncertain);
    int code = ll_check_owner(c);

    if (code != LL_OK)
        return code;
    if (l->async_call != NULL)
        return ll_fail(c, LL_E_INVAL, "a call of this lock is under way");
    if (q->kind == LL_EV_ACQUIRE ? ll_valid(l, 0) : !may_hold)
        return ll_fail(c, LL_E_INVAL, "the lock is held, or is not");
    if (q->kind == LL_EV_EXTEND && l->lost)
        return ll_fail_as(c, LL_LOST);
    if (c->async == NULL || c->async->is_over)
        return ll_fail(c, LL_E_UNAVAILABLE, "the client is attached to no connection");
    code = q->kind == LL_EV_RELEASE ? LL_OK : ll_check_lease(l, q->lease_ms);
    return code == LL_OK ? ll_check_mode(l, (int)q->mode) : code;
}

static int begin(struct ll_async_call q, const struct ll_key *keys, size_t n)
{
    struct ll_client *c = q.l->client;
    struct ll_async_call *call;
    int code = check(q.l, &q);

    if (code == LL_OK && q.kind == LL_EV_ACQUIRE)
        code = ll_prepare(q.l, keys, n);
    if (code != LL_OK)
        return code;
    if (q.kind == LL_EV_RELEASE)
        ll_renew_forget(q.l);
    q.a = c->async;
    q.began_us = ll_now_us();
    call = malloc(sizeof *call);
    if (call == NULL)
        return ll_fail_as(c, LL_E_NOMEM);
    *call = q;
    code = ll_async_submit(call);
    if (code == LL_OK) {
        q.l->async_call = call;
        return LL_OK;
    }
    free(call);
    return ll_fail(c, code, "%s", c->async->own.error);
}

int ll_async_acquire(struct ll_lock *l,
                     const struct ll_key *keys,
                     size_t n,
                     enum ll_mode mode,
                     uint32_t lease_ms,
                     ll_done_fn done,
                     void *arg)
{
    struct ll_async_call q = {LL_EV_ACQUIRE, mode, lease_ms, done, arg, .l = l};

    return begin(q, keys, n);
}

int ll_async_extend(struct ll_lock *l, uint32_t lease_ms, ll_done_fn done, void *arg)
{
    struct ll_async_call q = {LL_EV_EXTEND, LL_ALL, lease_ms, done, arg, .l = l};

    return begin(q, NULL, 0);
}

int ll_async_release(struct ll_lock *l, ll_done_fn done, void *arg)
{
    struct ll_async_call q = {LL_EV_RELEASE, LL_ALL, 0, done, arg, .l = l};

    return begin(q, NULL, 0);
}

/* begin: the calls for programs with an event loop; the end of a lock, with what is
 * under way for it. */
#include <stdlib.h>

#include "common/lock/lock_loop.h"
#include "common/lock/operation.h"

static int new_op(struct rlock_op **out,
                  struct rlock *l,
                  enum rlock_event_kind kind,
                  rlock_done_fn done,
                  void *arg)
{
    struct rlock_client *c = l->client;
    int code = rlock_check_owner(c);

    if (code == RLOCK_OK)
        code = rlock_loop_open(c);
    *out = code == RLOCK_OK ? calloc(1, sizeof **out) : NULL;
    if (code == RLOCK_OK && *out == NULL)
        code = rlock_fail_as(c, RLOCK_E_NOMEM);
    if (code == RLOCK_OK) {
        (*out)->l = l;
        (*out)->kind = kind;
        (*out)->done = done;
        (*out)->arg = arg;
        (*out)->began_us = rlock_now_us();
    }
    return code;
}

int rlock_begin_acquire(struct rlock *l,
                        const struct rlock_key *keys,
                        size_t n,
                        enum rlock_mode mode,
                        uint32_t lease_ms,
                        uint32_t wait_ms,
                        rlock_done_fn done,
                        void *arg)
{
    struct rlock_op *op;
    int code = new_op(&op, l, RLOCK_EV_ACQUIRE, done, arg);

    if (code != RLOCK_OK)
        return code;
    op->keys = n;
    code = rlock_waiting_begin(&op->of.waiting, l, keys, n, mode, lease_ms);
    if (code == RLOCK_UNDER_WAY)
        rlock_waiting_allow(&op->of.waiting, wait_ms, -1);
    return rlock_loop_add(op, code, rlock_waiting_step);
}

/* The code of an operation that is over as it begins. */
static int step_known(void *of)
{
    const struct rlock_op *op =
        (struct rlock_op *)((char *)of - offsetof(struct rlock_op, of));

    return op->code;
}

int rlock_begin_extend(struct rlock *l,
                       uint32_t lease_ms,
                       rlock_done_fn done,
                       void *arg)
{
    struct rlock_op *op;
    int code = new_op(&op, l, RLOCK_EV_EXTEND, done, arg);

    if (code != RLOCK_OK)
        return code;
    op->keys = l->granted;
    op->code = rlock_check_lease(l, lease_ms);
    if (op->code == RLOCK_OK)
        op->code = rlock_keeping_begin(&op->of.keeping, l, lease_ms);
    return rlock_loop_add(
        op, op->code, op->code == RLOCK_UNDER_WAY ? rlock_keeping_step : step_known);
}

int rlock_begin_release(struct rlock *l, rlock_done_fn done, void *arg)
{
    struct rlock_op *op;
    int code = new_op(&op, l, RLOCK_EV_RELEASE, done, arg);

    if (code != RLOCK_OK)
        return code;
    op->keys = l->granted;
    op->code = rlock_giving_begin(&op->of.giving, l);
    return rlock_loop_add(op, op->code,
                          op->code == RLOCK_UNDER_WAY ? rlock_giving_step : step_known);
}

void rlock_cancel(struct rlock *l)
{
    if (l->op == NULL || l->op->kind != RLOCK_EV_ACQUIRE || !rlock_is_owner(l->client))
        return;
    l->op->of.waiting.is_cancelled = true;
    rlock_ring(l->client);
}

/* ---- the end of a lock ---- */

void rlock_abandon(struct rlock *l)
{
    rlock_renew_forget(l);
    if (l->op != NULL)
        rlock_loop_drop(l->op);
    rlock_clear(l);
}

/* A client with a loop does not wait for the answer. */
static void release_first(struct rlock *l)
{
    struct rlock_client *c = l->client;
    struct rlock_op *op = l->op;

    if (!rlock_is_owner(c))
        return;
    if (op != NULL && op->kind == RLOCK_EV_ACQUIRE && !op->is_over &&
        op->of.waiting.stage == RLOCK_ATTEMPTING &&
        rlock_taking_cancel(&op->of.waiting.taking)) {
        op->of.waiting.stage = RLOCK_BETWEEN;
        return;
    }
    if ((l->granted == 0 && !l->uncertain) || l->released ||
        rlock_now_ms() >= l->deadline_ms)
        return;
    if (c->loop == NULL)
        (void)rlock_release(l);
    else if (!l->releasing && rlock_up_nodes(c) != 0)
        rlock_tell_release(l);
}

void rlock_free(struct rlock *l)
{
    if (l == NULL)
        return;
    rlock_renew_forget(l);
    release_first(l);
    rlock_abandon(l);
    rlock_free_memory(l);
}

/* async_call: sends one call over a redisAsyncContext and reads its answer. Scripts,
 * arguments and the parsing of answers are shared with the blocking calls. */
#include <stdlib.h>
#include <string.h>

#include "common/lock_async/async.h"

static const char shake_script[] =
    "return {redis.call('INFO'), redis.call('GET', KEYS[1]), redis.call('TIME')}";

/* A call is sent at most so often: again when the server did not know the script, or
 * when its clock had moved. */
enum { TRIES_MAX = 4 };

void rlock_async_leave(struct rlock_async *a)
{
    if (a == NULL || --a->users > 0)
        return;
    rlock_node_free(&a->own.nodes[0]);
    free(a);
}

/* ---- sending ---- */

static void on_answer(redisAsyncContext *ac, void *answer, void *arg);

/* Sends the command that was put. fn NULL: nobody waits for the answer. */
static int hand_over(struct rlock_async *a, redisCallbackFn *fn, void *arg)
{
    struct rlock_text *t = &a->own.nodes[0].link.out;
    int code = RLOCK_OK;

    if (t->is_short)
        code = rlock_fail_as(&a->own, RLOCK_E_NOMEM);
    else if (a->is_over || a->ac == NULL ||
             redisAsyncFormattedCommand(a->ac, fn, arg, t->at, t->size) != REDIS_OK)
        code = rlock_fail(&a->own, RLOCK_E_UNAVAILABLE, "the connection ends");
    t->size = 0;
    t->is_short = false;
    a->users += code == RLOCK_OK && fn != NULL ? 1 : 0;
    return code;
}

/* Fills in the round of a call of this kind. */
static void describe(struct rlock_async_call *call, enum rlock_event_kind kind)
{
    struct rlock_lock *l = call->l;
    struct rlock_client *own = &call->a->own;

    call->span = (struct rlock_span){.l = l, .n = l->n};
    if (kind == RLOCK_EV_ACQUIRE) {
        call->take = (struct rlock_take){&call->span, call->mode, call->lease_ms,
                                         l->client->floor, 0};
        call->r = rlock_round_of(own, l, LUA_ACQUIRE, INT64_MAX, rlock_fill_take,
                                 &call->take);
    } else if (kind == RLOCK_EV_EXTEND) {
        call->part = (struct rlock_part){.l = l, .ttl_ms = call->lease_ms};
        call->kept = (struct rlock_kept){&call->part, 1, l->granted};
        call->r =
            rlock_round_of(own, l, LUA_KEEP, INT64_MAX, rlock_fill_keep, &call->kept);
        call->r.keys = l->granted;
    } else {
        call->span.index = l->table;
        call->span.n = rlock_pick(l, l->table);
        call->r = rlock_round_of(own, l, LUA_RELEASE, INT64_MAX, rlock_fill_give,
                                 &call->span);
        call->r.keys = call->span.n;
    }
    call->r.who = 1;
    call->r.whole = call->is_whole ? 1 : 0;
}

static int send_call(struct rlock_async_call *call)
{
    int code;

    describe(call, call->kind);
    call->r.fill(&call->r, &call->a->own.nodes[0]);
    call->id = ++call->a->own.calls;
    rlock_put_number(&call->a->own.nodes[0].link.out, call->id);
    call->deadline_ms = rlock_deadline(call->lease_ms); /* no command was sent */
    code = hand_over(call->a, on_answer, call);
    if (code == RLOCK_OK && call->kind == RLOCK_EV_RELEASE)
        call->l->releasing = true;
    return code;
}

int rlock_async_submit(struct rlock_async_call *call)
{
    struct rlock_async *a = call->a;
    struct rlock_node *node = &a->own.nodes[0];
    struct rlock_async_call **last = &a->waiting;
    int code = RLOCK_OK;

    if (node->is_stale) /* the server refused something: ask for its role again */
        node->check_at_ms = 0;
    node->is_stale = false;
    if (a->waiting == NULL && rlock_now_ms() < node->check_at_ms)
        return send_call(call);
    if (a->waiting == NULL) {
        node->asked_ms = rlock_now_ms();
        rlock_put_words(&node->link.out, (const char *[]){"EVAL", shake_script, "1",
                                                          a->own.last_key, NULL});
        code = hand_over(a, on_answer, &a->handshake);
    }
    while (*last != NULL)
        last = &(*last)->next;
    call->next = NULL;
    *last = code == RLOCK_OK ? call : NULL;
    return code;
}

/* ---- answers ---- */

/* done may free the lock and close the client. */
static void finish(struct rlock_async_call *call, int code)
{
    struct rlock_lock *l = call->l;
    struct rlock_client *c = l->client, *own = &call->a->own;
    rlock_done_fn done = call->done;
    void *arg = call->arg;

    if (code != RLOCK_OK)
        memcpy(c->error, own->error, sizeof c->error);
    l->async_call = NULL;
    (void)rlock_leave(
        c, (struct rlock_event){call->kind, code, l->n,
                                call->kind == RLOCK_EV_ACQUIRE ? l->granted : 0,
                                call->began_us});
    free(call);
    if (done != NULL)
        done(l, code, arg);
}

/* Sends the waiting calls, or ends them with the fault. A call that begins inside a
 * callback waits for the next handshake. */
static void read_handshake(struct rlock_async *a, redisReply *reply)
{
    struct rlock_node *node = &a->own.nodes[0];
    struct rlock_async_call *call, *next = a->waiting;
    int code = RLOCK_E_UNAVAILABLE, sent;

    if (reply != NULL && reply->elements == SHAKE_CT) {
        /* NOLINTNEXTLINE(bugprone-sizeof-expression): the array holds pointers */
        memcpy(node->shake.replies, reply->element,
               SHAKE_CT * sizeof *node->shake.replies);
        node->shake.wanted = node->shake.reply_ct = SHAKE_CT;
        code = rlock_handshake_read(&a->own, node);
    } else if (reply != NULL) {
        code = rlock_reply_code(&a->own, node, reply);
    }
    if (code == RLOCK_OK)
        rlock_node_checked(&a->own, node);
    else
        rlock_node_fail(&a->own, node, code);
    a->waiting = NULL;
    while ((call = next) != NULL) {
        next = call->next;
        if (call->l == NULL)
            free(call);
        else if ((sent = code) != RLOCK_OK || (sent = send_call(call)) != RLOCK_OK)
            finish(call, sent);
    }
}

/* Sends a call again that certainly did not run; false: it ran, or may have. */
static bool is_sent_again(struct rlock_async_call *call, const redisReply *reply)
{
    struct rlock_client *own = &call->a->own;
    bool is_late = rlock_is_late(reply);
    int code;

    if (!is_late && !rlock_is_error(reply, "NOSCRIPT"))
        return false;
    if (is_late)
        own->nodes[0].check_at_ms = 1; /* the clocks have diverged */
    call->is_whole = call->is_whole || !is_late;
    code = ++call->tries < TRIES_MAX
               ? rlock_async_submit(call)
               : rlock_fail(own, RLOCK_E_UNAVAILABLE, "the command ran after its time");
    if (code != RLOCK_OK)
        finish(call, code);
    return true;
}

static int read_take(struct rlock_async_call *call, redisReply *reply)
{
    struct rlock_lock *l = call->l;
    struct rlock_client *own = &call->a->own;
    int code = RLOCK_E_UNCERTAIN;

    if (reply != NULL)
        code = rlock_read_take(own, &own->nodes[0], &call->take, reply);
    memcpy(l->run_ids[0], own->nodes[0].run_id, sizeof l->run_ids[0]);
    l->lease_ms = call->lease_ms;
    l->deadline_ms = call->deadline_ms;
    l->token = call->take.token;
    rlock_note_grants(l);
    for (size_t i = 0; i < l->n; i++)
        l->slots[i].grants = l->slots[i].held ? 1 : 0;
    rlock_note_token(l->client, l->token);
    if (l->granted > 0 && rlock_now_ms() >= l->deadline_ms)
        code = rlock_fail(own, RLOCK_E_UNAVAILABLE, "the answer came after the lease");
    if (code < 0 && (reply == NULL || l->granted > 0 || rlock_is_half_done(code))) {
        l->uncertain = call->is_whole = true; /* nobody would read NOSCRIPT */
        describe(call, RLOCK_EV_RELEASE);
        call->r.fill(&call->r, &own->nodes[0]);
        rlock_put_number(&own->nodes[0].link.out, ++own->calls);
        l->uncertain = hand_over(call->a, NULL, NULL) != RLOCK_OK;
        rlock_drop_grants(l);
    }
    return code;
}

static int read_call(struct rlock_async_call *call, redisReply *reply)
{
    struct rlock_lock *l = call->l;
    int code;

    describe(call, call->kind);
    call->r.calls[0].code = reply != NULL ? RLOCK_OK : RLOCK_E_UNCERTAIN;
    call->r.answered = reply != NULL ? 1 : 0;
    call->r.unanswered = reply == NULL ? 1 : 0;
    call->r.calls[0].x.wanted = 1;
    call->r.calls[0].x.reply_ct = call->r.answered;
    call->r.calls[0].x.replies[0] = reply;
    if (call->kind == RLOCK_EV_ACQUIRE)
        return read_take(call, reply);
    if (call->kind == RLOCK_EV_EXTEND) {
        code = rlock_read_keep(&call->r, &call->kept);
        code = code == RLOCK_OK ? call->part.code : code;
        return rlock_note_kept(l, code, call->deadline_ms);
    }
    return rlock_read_give(&call->r, &call->span, rlock_was_valid(l));
}

/* The answer without its id; one that belongs to no call counts as none. */
static redisReply *of_call(struct rlock_async_call *call, redisReply *reply)
{
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR ||
        rlock_cut_id(reply, call->id))
        return reply;
    (void)rlock_fail(&call->a->own, 0,
                     "an answer that belongs to no call, or makes no sense");
    return NULL;
}

static void on_answer(redisAsyncContext *ac, void *answer, void *arg)
{
    struct rlock_async_call *call = arg;
    struct rlock_async *a = call->a;
    redisReply *reply;

    (void)ac;
    if (answer == NULL) {
        a->is_over = true;
        (void)rlock_fail(&a->own, 0, "the connection has ended");
    }
    if (call == &a->handshake)
        read_handshake(a, answer);
    else if (call->l == NULL)
        free(call);
    else if ((reply = of_call(call, answer)) == NULL || !is_sent_again(call, reply))
        finish(call, read_call(call, reply));
    a->own.nodes[0].shake.reply_ct = 0; /* hiredis frees it */
    rlock_async_leave(a);
}

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

void ll_async_leave(struct ll_async *a)
{
    if (a == NULL || --a->users > 0)
        return;
    ll_node_free(&a->own.nodes[0]);
    free(a);
}

/* ---- sending ---- */

static void on_answer(redisAsyncContext *ac, void *answer, void *arg);

/* Sends the command that was put. fn NULL: nobody waits for the answer. */
static int hand_over(struct ll_async *a, redisCallbackFn *fn, void *arg)
{
    struct ll_text *t = &a->own.nodes[0].out;
    int code = LL_OK;

    if (t->is_short)
        code = ll_fail_as(&a->own, LL_E_NOMEM);
    else if (a->is_over || a->ac == NULL ||
             redisAsyncFormattedCommand(a->ac, fn, arg, t->at, t->size) != REDIS_OK)
        code = ll_fail(&a->own, LL_E_UNAVAILABLE, "the connection ends");
    t->size = 0;
    t->is_short = false;
    a->users += code == LL_OK && fn != NULL ? 1 : 0;
    return code;
}

/* Fills in the round of a call of this kind. */
static void describe(struct ll_async_call *call, enum ll_event_kind kind)
{
    struct ll_lock *l = call->l;
    struct ll_client *own = &call->a->own;

    call->span = (struct ll_span){.l = l, .n = l->n};
    if (kind == LL_EV_ACQUIRE) {
        call->take = (struct ll_take){&call->span, call->mode, call->lease_ms,
                                      l->client->floor, 0};
        call->r = ll_round_of(own, l, LUA_ACQUIRE, ll_fill_take, &call->take);
    } else if (kind == LL_EV_EXTEND) {
        call->part = (struct ll_part){.l = l, .ttl_ms = call->lease_ms};
        call->kept = (struct ll_kept){&call->part, 1, l->granted};
        call->r = ll_round_of(own, l, LUA_KEEP, ll_fill_keep, &call->kept);
        call->r.keys = l->granted;
    } else {
        call->span.index = l->table;
        call->span.n = ll_pick(l, l->table);
        call->r = ll_round_of(own, l, LUA_RELEASE, ll_fill_give, &call->span);
        call->r.keys = call->span.n;
    }
    call->r.who = 1;
    call->r.whole = call->is_whole ? 1 : 0;
}

static int send_call(struct ll_async_call *call)
{
    int code;

    describe(call, call->kind);
    call->r.fill(&call->r, &call->a->own.nodes[0]);
    call->deadline_ms = ll_deadline(call->lease_ms); /* no command was sent */
    code = hand_over(call->a, on_answer, call);
    if (code == LL_OK && call->kind == LL_EV_RELEASE)
        call->l->releasing = true;
    return code;
}

int ll_async_submit(struct ll_async_call *call)
{
    struct ll_async *a = call->a;
    struct ll_node *node = &a->own.nodes[0];
    struct ll_async_call **last = &a->waiting;
    int code = LL_OK;

    if (a->waiting == NULL && ll_now_ms() < node->check_at_ms)
        return send_call(call);
    if (a->waiting == NULL) {
        node->asked_ms = ll_now_ms();
        ll_put_words(&node->out, (const char *[]){"EVAL", shake_script, "1",
                                                  a->own.last_key, NULL});
        code = hand_over(a, on_answer, &a->handshake);
    }
    while (*last != NULL)
        last = &(*last)->next;
    call->next = NULL;
    *last = code == LL_OK ? call : NULL;
    return code;
}

/* ---- answers ---- */

/* done may free the lock and close the client. */
static void finish(struct ll_async_call *call, int code)
{
    struct ll_lock *l = call->l;
    struct ll_client *c = l->client, *own = &call->a->own;
    ll_done_fn done = call->done;
    void *arg = call->arg;

    if (code != LL_OK)
        memcpy(c->error, own->error, sizeof c->error);
    l->async_call = NULL;
    (void)ll_leave(c, (struct ll_event){call->kind, code, l->n,
                                        call->kind == LL_EV_ACQUIRE ? l->granted : 0,
                                        call->began_us});
    free(call);
    if (done != NULL)
        done(l, code, arg);
}

/* Sends the waiting calls, or ends them with the fault. A call that begins inside a
 * callback waits for the next handshake. */
static void read_handshake(struct ll_async *a, redisReply *reply)
{
    struct ll_node *node = &a->own.nodes[0];
    struct ll_async_call *call, *next = a->waiting;
    int code = LL_E_UNAVAILABLE, sent;

    if (reply != NULL && reply->elements == SHAKE_CT) {
        /* NOLINTNEXTLINE(bugprone-sizeof-expression): the array holds pointers */
        memcpy(node->replies, reply->element, SHAKE_CT * sizeof *node->replies);
        code = ll_handshake_read(&a->own, node);
    } else if (reply != NULL) {
        code = ll_reply_code(&a->own, node, reply);
    }
    if (code == LL_OK)
        ll_node_checked(&a->own, node);
    else
        ll_node_fail(&a->own, node, code);
    a->waiting = NULL;
    while ((call = next) != NULL) {
        next = call->next;
        if (call->l == NULL)
            free(call);
        else if ((sent = code) != LL_OK || (sent = send_call(call)) != LL_OK)
            finish(call, sent);
    }
}

/* Sends a call again that certainly did not run; false: it ran, or may have. */
static bool is_sent_again(struct ll_async_call *call, const redisReply *reply)
{
    struct ll_client *own = &call->a->own;
    bool is_late = ll_is_late(reply);
    int code;

    if (!is_late && !ll_is_error(reply, "NOSCRIPT"))
        return false;
    if (is_late)
        own->nodes[0].check_at_ms = 1; /* the clocks have diverged */
    call->is_whole = call->is_whole || !is_late;
    code = ++call->tries < TRIES_MAX
               ? ll_async_submit(call)
               : ll_fail(own, LL_E_UNAVAILABLE, "the command ran after its time");
    if (code != LL_OK)
        finish(call, code);
    return true;
}

static int read_take(struct ll_async_call *call, redisReply *reply)
{
    struct ll_lock *l = call->l;
    struct ll_client *own = &call->a->own;
    int code = LL_E_UNCERTAIN;

    if (reply != NULL)
        code = ll_read_take(own, &call->take, reply);
    memcpy(l->run_ids[0], own->nodes[0].run_id, sizeof l->run_ids[0]);
    l->lease_ms = call->lease_ms;
    l->deadline_ms = call->deadline_ms;
    l->token = call->take.token;
    ll_note_grants(l);
    for (size_t i = 0; i < l->n; i++)
        l->slots[i].grants = l->slots[i].held ? 1 : 0;
    ll_note_token(l->client, l->token);
    if (l->granted > 0 && ll_now_ms() >= l->deadline_ms)
        code = ll_fail(own, LL_E_UNAVAILABLE, "the answer came after the lease");
    if (code < 0 && (reply == NULL || l->granted > 0 || ll_is_half_done(code))) {
        l->uncertain = call->is_whole = true; /* nobody would read NOSCRIPT */
        describe(call, LL_EV_RELEASE);
        call->r.fill(&call->r, &own->nodes[0]);
        l->uncertain = hand_over(call->a, NULL, NULL) != LL_OK;
        ll_drop_grants(l);
    }
    return code;
}

static int read_call(struct ll_async_call *call, redisReply *reply)
{
    struct ll_node *node = &call->a->own.nodes[0];
    struct ll_lock *l = call->l;
    int code;

    describe(call, call->kind);
    call->r.codes[0] = node->code = reply != NULL ? LL_OK : LL_E_UNCERTAIN;
    call->r.answered = reply != NULL ? 1 : 0;
    call->r.unanswered = reply == NULL ? 1 : 0;
    node->reply_ct = call->r.answered;
    node->replies[0] = reply;
    if (call->kind == LL_EV_ACQUIRE)
        return read_take(call, reply);
    if (call->kind == LL_EV_EXTEND) {
        code = ll_read_keep(&call->r, &call->kept);
        code = code == LL_OK ? call->part.code : code;
        return ll_note_kept(l, code, call->deadline_ms);
    }
    return ll_read_give(&call->r, &call->span, ll_was_valid(l));
}

static void on_answer(redisAsyncContext *ac, void *answer, void *arg)
{
    struct ll_async_call *call = arg;
    struct ll_async *a = call->a;

    (void)ac;
    if (answer == NULL) {
        a->is_over = true;
        (void)ll_fail(&a->own, 0, "the connection has ended");
    }
    if (call == &a->handshake)
        read_handshake(a, answer);
    else if (call->l == NULL)
        free(call);
    else if (answer == NULL || !is_sent_again(call, answer))
        finish(call, read_call(call, answer));
    a->own.nodes[0].reply_ct = 0; /* hiredis frees it */
    ll_async_leave(a);
}

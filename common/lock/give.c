/* give: release of a lock of ours or of a dead process: compares the nonce and deletes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/operation.h"

static void put_lists(struct rlock_text *t, const struct rlock_span *s)
{
    char name[RLOCK_WAKE_NAME];

    for (size_t i = 0; i < s->n; i++)
        rlock_put(t, name, rlock_wake_name(s->l, rlock_span_key(s, i), name));
}

/* The lists of wake-ups go along where they are few, so that a waiter is woken before
 * the next acquire of this client. */
void rlock_fill_give(struct rlock_round *r, struct rlock_node *node)
{
    const struct rlock_span *s = r->arg;

    bool has_lists =
        s->n <= RLOCK_WAKE_KEYS && r->c->kind != RLOCK_QUORUM && !s->is_apart;

    rlock_eval(r, node, has_lists ? 2 * s->n : s->n, 3);
    r->keys = s->n;
    rlock_put_span(&node->link.out, s);
    if (has_lists)
        put_lists(&node->link.out, s);
    if (s->l->seen != NULL)
        rlock_put(&node->link.out, s->l->seen, s->l->seen_len);
    else
        rlock_put_word(&node->link.out, s->l->mark);
    rlock_put_word(&node->link.out, s->l->seen != NULL ? "whole" : "");
    rlock_put_number(&node->link.out, (int64_t)s->n);
}

static bool is_same_server(const struct rlock_round *r, const struct rlock *l, size_t i)
{
    const char *run_id = r->c->nodes[i].run_id;

    return run_id[0] != '\0' && strcmp(l->run_ids[i], run_id) == 0;
}

/* Code of the key j, of which the nodes said so (NULL: nothing). A node without an
 * answer counts as ours if its grant was still running, or if an earlier try may have
 * deleted it. Of any holder one node's key is enough. */
static int code_of(const struct rlock_round *r,
                   const struct rlock *l,
                   const struct rlock_slot *slot,
                   const char *const *all,
                   size_t j)
{
    size_t ours = 0, foreign = 0, silent = 0;

    for (size_t i = 0; i < r->c->node_ct; i++) {
        char said = all[i] != NULL ? all[i][j] : '\0';

        if (said == '1' ||
            (l->is_forced && said != '\0' && rlock_has(r->unanswered, i)) ||
            (rlock_has(slot->gone, i) && is_same_server(r, l, i)))
            ours++;
        foreign += said == '-' ? 1 : 0;
        silent += said == '\0' ? 1 : 0;
    }
    if (ours >= (l->is_forced ? 1 : rlock_majority(r->c)))
        return RLOCK_OK;
    return foreign > 0 && foreign + silent >= rlock_majority(r->c) ? RLOCK_NOT_OWNER
                                                                   : RLOCK_GONE;
}

/* Notes the keys that were deleted, or may have been (no answer). A single server that
 * answered with an error has deleted nothing. */
static void note_deletions(const struct rlock_round *r, const struct rlock_span *s)
{
    for (size_t i = 0; i < r->c->node_ct; i++) {
        const char *said = rlock_said(r, i);
        bool is_silent =
            rlock_has(r->unanswered, i) || (said == NULL && r->c->node_ct > 1);

        for (size_t j = 0; j < s->n; j++) {
            struct rlock_slot *slot = rlock_span_slot(s, j);

            if (rlock_has(slot->grants, i) &&
                (is_silent || (said != NULL && said[j] == '1')))
                slot->gone |= (unsigned char)(1U << i);
        }
    }
}

int rlock_read_give(const struct rlock_round *r,
                    const struct rlock_span *s,
                    bool was_valid)
{
    struct rlock *l = s->l;
    const char *said[RLOCK_NODES_MAX];
    size_t answers = 0;

    for (size_t i = 0; i < r->c->node_ct; i++) {
        said[i] = rlock_said(r, i);
        answers += said[i] != NULL ? 1 : 0;
    }
    if (was_valid)
        note_deletions(r, s);
    if (answers < rlock_majority(r->c))
        return rlock_too_few(r);
    l->release_code = RLOCK_OK;
    for (size_t j = 0; j < s->n; j++) {
        struct rlock_slot *slot = rlock_span_slot(s, j);
        int code = code_of(r, l, slot, said, j);

        slot->code = code;
        l->release_code = code > l->release_code ? code : l->release_code;
        l->granted -= slot->held ? 1 : 0;
        slot->held = false;
    }
    l->released = true;
    l->uncertain = false;
    return l->release_code;
}

size_t rlock_pick(const struct rlock *l, size_t *index)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++) {
        if (l->slots[i].held || l->uncertain)
            index[n++] = i;
    }
    return n;
}

int rlock_giving_begin(struct rlock_giving *g, struct rlock *l)
{
    int code = rlock_check_owner(l->client);

    if (code == RLOCK_OK)
        code = rlock_check_op(l);
    if (code != RLOCK_OK)
        return code;
    if (l->released)
        return l->release_code;
    if (l->granted == 0 && !l->uncertain)
        return RLOCK_GONE;
    rlock_renew_forget(l);
    *g = (struct rlock_giving){.l = l, .limit_ms = rlock_call_end(l->client)};
    return RLOCK_UNDER_WAY;
}

static void begin(struct rlock_giving *g)
{
    struct rlock *l = g->l;

    l->releasing = g->some == 0;
    g->was_valid = rlock_was_valid(l);
    g->span = (struct rlock_span){
        .l = l,
        .index = l->table,
        .n = g->some > 0 ? g->some : rlock_pick(l, l->table),
    };
    g->gather = (struct rlock_gather){.limit_ms = g->limit_ms};
    g->round = rlock_round_of(l->client, l, LUA_RELEASE, g->limit_ms, rlock_fill_give,
                              &g->span);
    g->round.enough = rlock_is_all_ours;
    g->stage = RLOCK_GATHERING;
}

/* ---- wake-ups ---- */

/* The keys of a release that others wait for, by their indices in its answer. */
struct wake {
    const struct rlock_span *s;
    const redisReply *reply;
};

/* The list of the key that stands at e; 0: there is none. */
static size_t read_waited(const struct wake *w, size_t e, char name[RLOCK_WAKE_NAME])
{
    int64_t i;

    if (!rlock_reply_number(w->reply->element[e], &i) || i < 1 || (size_t)i > w->s->n)
        return 0;
    return rlock_wake_name(w->s->l, rlock_span_key(w->s, (size_t)i - 1), name);
}

static void fill_wake(struct rlock_round *r, struct rlock_node *node)
{
    const struct wake *w = r->arg;
    char name[RLOCK_WAKE_NAME];
    size_t n = 0, len;

    for (size_t e = 1; e < w->reply->elements; e++)
        n += read_waited(w, e, name) > 0 ? 1 : 0;
    rlock_eval(r, node, n, 0);
    for (size_t e = 1; e < w->reply->elements; e++) {
        len = read_waited(w, e, name);
        if (len > 0)
            rlock_put(&node->link.out, name, len);
    }
}

/* Sends a wake-up for each key that was released and is waited for; nobody waits for
 * the answer. */
static void wake(const struct rlock_giving *g)
{
    struct rlock_client *c = g->l->client;
    struct wake w = {.s = &g->span, .reply = rlock_answer(&g->round, 0)};
    struct rlock_round r = rlock_round_of(c, g->l, LUA_WAKE, 0, fill_wake, &w);

    if (c->node_ct == 1 && rlock_said(&g->round, 0) != NULL &&
        w.reply->type == REDIS_REPLY_ARRAY && w.reply->elements > 1)
        rlock_round_tell(&r, 1);
}

/* The code of all keys so far. After a fault of one, the rest of them is still to be
 * released. */
static int end_part(struct rlock_giving *g)
{
    struct rlock *l = g->l;
    bool was_uncertain = l->uncertain;
    int code = rlock_read_give(&g->round, &g->span, g->was_valid);

    l->released = code >= 0 && g->rest == 0 && (g->some == 0 || l->granted == 0);
    l->uncertain = l->released ? l->uncertain : was_uncertain;
    g->code = code < 0 || code > g->code ? code : g->code;
    l->release_code = l->released ? g->code : RLOCK_OK;
    return g->code;
}

/* Nodes of a quorum are told though they are too few: their grants are in the way of
 * others. */
int rlock_giving_step(void *giving)
{
    struct rlock_giving *g = giving;
    int code;

    if (g->stage == RLOCK_RESTING)
        begin(g);
    if (g->stage == RLOCK_GATHERING) {
        code = rlock_gather_step(g->l->client, &g->gather);
        if (code != RLOCK_OK && code != RLOCK_E_NO_QUORUM)
            return code;
        g->stage = RLOCK_CALLING;
    }
    while ((code = rlock_round_step(&g->round)) != RLOCK_UNDER_WAY) {
        if (!g->span.is_apart && rlock_is_apart(&g->round)) {
            g->rest = g->span.n - 1;
            g->span.is_apart = true;
        } else {
            wake(g);
            code = end_part(g);
            if (code < 0 || g->rest == 0) {
                rlock_round_clear(&g->round);
                return code;
            }
            g->rest--;
            g->span.index++;
        }
        g->span.n = 1;
        rlock_round_again(&g->round);
    }
    return code;
}

void rlock_giving_clear(struct rlock_giving *g)
{
    rlock_round_clear(&g->round);
}

void rlock_tell_release(struct rlock *l)
{
    bool was_uncertain = l->uncertain;
    struct rlock_span s = {.l = l, .index = l->table};
    struct rlock_round r =
        rlock_round_of(l->client, l, LUA_RELEASE, 0, rlock_fill_give, &s);

    l->uncertain = true;
    s.n = rlock_pick(l, l->table);
    l->uncertain = was_uncertain;
    rlock_round_tell(&r, RLOCK_ALL_NODES);
}

/* An acquire of the loop that waits for its answer, and cannot be asked again. */
static bool is_late_too(const struct rlock_op *op)
{
    const struct rlock_taking *t = &op->of.waiting.taking;

    return op->kind == RLOCK_EV_ACQUIRE && !op->is_over &&
           op->of.waiting.stage == RLOCK_ATTEMPTING && t->stage == RLOCK_VOTING &&
           rlock_now_ms() + op->l->client->nodes[0].trip_ms >= t->limit_ms;
}

void rlock_give_late(struct rlock *l)
{
    struct rlock_client *c = l->client;

    if (c->node_ct > 1 || !c->nodes[0].is_stale)
        return;
    rlock_tell_release(l);
    for (struct rlock_op *op = c->loop != NULL ? c->loop->first : NULL; op != NULL;
         op = op->next) {
        if (op->l != l && is_late_too(op))
            rlock_tell_release(op->l);
    }
    rlock_socket_leave(c, &c->nodes[0]);
    rlock_node_close(&c->nodes[0]);
}

int rlock_release(struct rlock *l)
{
    struct rlock_event event = {RLOCK_EV_RELEASE, .keys = l->granted,
                                .us = rlock_now_us()};
    struct rlock_giving g;

    event.code = rlock_giving_begin(&g, l);
    if (event.code < 0)
        return event.code;
    if (event.code == RLOCK_UNDER_WAY)
        event.code = rlock_drive(l->client, rlock_giving_step, &g);
    return rlock_leave(l->client, event);
}

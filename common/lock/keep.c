/* keep: extends the lease of keys that are still ours, or only checks them. Extend,
 * verify and the renewer use the same call over parts. */
#include <stdio.h>
#include <string.h>

#include "common/lock/operation.h"

/* ---- the script ---- */

/* The keys that a command has for each part, and the number of parts with keys. */
static size_t count_keys(struct rlock_kept *call)
{
    size_t parts = 0;

    call->keys = 0;
    for (size_t i = 0; i < call->n; i++) {
        struct rlock_part *part = &call->parts[i];

        part->keys = part->l != NULL ? part->l->granted : 0;
        parts += part->l != NULL ? 1 : 0;
        call->keys += part->keys;
    }
    return parts;
}

/* The part of a key; at: its place among the held ones. */
static struct rlock_part *part_of(const struct rlock_kept *call, size_t *at)
{
    struct rlock_part *part = call->parts;

    for (*at = call->at; *at >= part->keys; part++)
        *at -= part->keys;
    return part;
}

static void put_part(struct rlock_text *t, const struct rlock_part *part, size_t keys)
{
    rlock_put(t, part->l->mark, RLOCK_NONCE_HEX + 1);
    rlock_put_number(t, part->is_end ? -(int64_t)part->ttl_ms : part->ttl_ms);
    rlock_put_number(t, (int64_t)keys);
}

static void
fill_one(struct rlock_round *r, struct rlock_node *node, const struct rlock_kept *call)
{
    size_t at, k = 0;
    const struct rlock_part *part = part_of(call, &at);

    for (k = rlock_next_held(part->l, 0); at > 0; at--)
        k = rlock_next_held(part->l, k + 1);
    rlock_eval(r, node, 1, 5);
    rlock_put_name(&node->link.out, part->l, k);
    rlock_put_window(r, node);
    put_part(&node->link.out, part, 1);
}

void rlock_fill_keep(struct rlock_round *r, struct rlock_node *node)
{
    struct rlock_kept *call = (struct rlock_kept *)(uintptr_t)r->arg;
    size_t parts;

    if (call->is_apart) {
        fill_one(r, node, call);
        return;
    }
    parts = count_keys(call);
    rlock_eval(r, node, call->keys, 2 + 3 * parts);
    for (size_t i = 0; i < call->n; i++) {
        const struct rlock *l = call->parts[i].l;

        for (size_t k = 0; l != NULL && (k = rlock_next_held(l, k)) < l->n; k++)
            rlock_put_name(&node->link.out, l, k);
    }
    rlock_put_window(r, node);
    for (size_t i = 0; i < call->n; i++) {
        const struct rlock_part *part = &call->parts[i];

        if (part->l != NULL)
            put_part(&node->link.out, part, part->keys);
    }
}

/* ---- answers ---- */

/* '1' ours or '0' not ours, by a majority; '?': too few nodes have answered. */
static char opinion(const struct rlock_round *r, size_t key)
{
    size_t ours = 0, not_ours = 0;

    for (size_t i = 0; i < r->c->node_ct; i++) {
        const char *said = rlock_said(r, i);

        ours += said != NULL && said[key] == '1' ? 1 : 0;
        not_ours += said != NULL && said[key] != '1' ? 1 : 0;
    }
    if (ours >= rlock_majority(r->c))
        return '1';
    return not_ours > r->c->node_ct - rlock_majority(r->c) ? '0' : '?';
}

static void mark(struct rlock_part *part, const char *opinions)
{
    struct rlock *l = part->l;

    part->code = RLOCK_OK;
    for (size_t i = 0; (i = rlock_next_held(l, i)) < l->n; i++) {
        if (*opinions++ == '1')
            continue;
        part->code = RLOCK_LOST;
        l->slots[i].code = RLOCK_LOST;
    }
}

/* The shortest time left that any node reports; -1: none does. */
static int64_t least_left(const struct rlock_round *r)
{
    int64_t least_ms = INT64_MAX, ms;

    for (size_t i = 0; (i = rlock_next(r->c, r->answered, i)) < r->c->node_ct; i++) {
        const redisReply *reply = rlock_answer(r, i);

        if (reply->elements == 2 && rlock_reply_number(reply->element[1], &ms) &&
            ms >= 0)
            least_ms = rlock_least(least_ms, ms);
    }
    return least_ms != INT64_MAX ? least_ms : -1;
}

int rlock_read_keep(const struct rlock_round *r, const struct rlock_kept *call)
{
    char opinions[RLOCK_KEYS_MAX];
    size_t at = 0;

    memcpy(opinions, call->opinions, sizeof opinions);
    for (size_t key = 0; key < call->keys && !call->is_apart; key++) {
        opinions[key] = opinion(r, key);
        if (opinions[key] == '?')
            return rlock_too_few(r);
    }
    if (call->is_apart && call->at < call->keys)
        return rlock_too_few(r);
    for (size_t i = 0; i < call->n; at += call->parts[i].keys, i++) {
        if (call->parts[i].l == NULL)
            continue;
        mark(&call->parts[i], opinions + at);
        call->parts[i].left_ms = call->is_apart ? call->left_ms : least_left(r);
        if (r->c->node_ct > 1 && call->parts[i].code == RLOCK_OK &&
            call->parts[i].ttl_ms > 0)
            rlock_heal(r, &call->parts[i], at);
    }
    return RLOCK_OK;
}

/* A key of a lock that has left is not asked for. */
static void skip_left(struct rlock_kept *call)
{
    size_t at;

    while (call->at < call->keys && part_of(call, &at)->l == NULL)
        call->at++;
}

int rlock_keep_step(struct rlock_round *r, struct rlock_kept *call)
{
    while (rlock_round_step(r) != RLOCK_UNDER_WAY) {
        if (!call->is_apart && (call->keys == 1 || !rlock_is_apart(r)))
            return RLOCK_OK;
        if (call->is_apart) {
            int64_t left_ms = least_left(r);

            call->opinions[call->at] = opinion(r, 0);
            if (call->opinions[call->at] == '?')
                return RLOCK_OK; /* a fault */
            if (left_ms >= 0 && (call->left_ms < 0 || left_ms < call->left_ms))
                call->left_ms = left_ms;
            call->at++;
        } else {
            call->is_apart = true;
            call->left_ms = -1;
        }
        skip_left(call);
        if (call->at == call->keys)
            return RLOCK_OK;
        rlock_round_again(r);
    }
    return RLOCK_UNDER_WAY;
}

struct rlock_round
rlock_keep_round(struct rlock_client *c, struct rlock_kept *call, int64_t limit_ms)
{
    struct rlock_round r =
        rlock_round_of(c, call->parts[0].l, LUA_KEEP, limit_ms, rlock_fill_keep, call);

    (void)count_keys(call);
    r.enough = rlock_is_all_ours;
    return r;
}

/* ---- extend, verify ---- */

int rlock_note_kept(struct rlock *l, int code, int64_t deadline_ms)
{
    if (code == RLOCK_LOST) {
        l->lost = true;
        (void)rlock_fail_as(l->client, RLOCK_LOST);
    }
    if (code == RLOCK_OK && deadline_ms > l->deadline_ms)
        l->deadline_ms = deadline_ms;
    return code;
}

int rlock_keeping_begin(struct rlock_keeping *k, struct rlock *l, uint32_t lease_ms)
{
    int code = rlock_check_op(l);

    if (code != RLOCK_OK)
        return code;
    if (l->granted == 0 || l->released || l->releasing)
        return rlock_fail(l->client, RLOCK_E_INVAL, "the lock is not held");
    if (l->lost)
        return rlock_fail_as(l->client, RLOCK_LOST);
    *k = (struct rlock_keeping){
        .l = l, .lease_ms = lease_ms, .limit_ms = rlock_call_end(l->client)};
    k->gather.limit_ms = k->limit_ms;
    k->stage = RLOCK_GATHERING;
    return RLOCK_UNDER_WAY;
}

int rlock_keeping_step(void *keeping)
{
    struct rlock_keeping *k = keeping;
    struct rlock_client *c = k->l->client;
    int code;

    if (k->stage == RLOCK_GATHERING) {
        code = rlock_gather_step(c, &k->gather);
        if (code != RLOCK_OK)
            return code;
        k->deadline_ms = rlock_deadline(k->lease_ms); /* no command was sent */
        if (k->is_end) /* from now on, whatever becomes of the command */
            k->l->deadline_ms = rlock_least(k->l->deadline_ms, k->deadline_ms);
        k->part =
            (struct rlock_part){.l = k->l, .ttl_ms = k->lease_ms, .is_end = k->is_end};
        k->kept = (struct rlock_kept){.parts = &k->part, .n = 1};
        k->round = rlock_keep_round(c, &k->kept, k->limit_ms);
        k->stage = RLOCK_CALLING;
    }
    code = rlock_keep_step(&k->round, &k->kept);
    if (code == RLOCK_UNDER_WAY)
        return code;
    code = rlock_read_keep(&k->round, &k->kept);
    rlock_round_clear(&k->round);
    if (code == RLOCK_OK)
        code = k->part.code;
    return rlock_note_kept(k->l, code,
                           k->lease_ms > 0 && !k->is_end ? k->deadline_ms : 0);
}

void rlock_keeping_clear(struct rlock_keeping *k)
{
    rlock_round_clear(&k->round);
}

/* left_ms NULL: an extend, or the end of the lease, else a check. */
static int keep_call(struct rlock *l, uint32_t lease_ms, bool is_end, int64_t *left_ms)
{
    struct rlock_event event = {RLOCK_EV_EXTEND, .us = rlock_now_us()};
    struct rlock_keeping k;
    int code = rlock_check_owner(l->client);

    if (code == RLOCK_OK && left_ms == NULL)
        code = rlock_check_lease(l, lease_ms);
    if (code == RLOCK_OK && is_end && l->renewal.renewer != NULL)
        code =
            rlock_fail(l->client, RLOCK_E_INVAL, "the lock is renewed: end that first");
    if (code != RLOCK_OK)
        return code;
    event.code = rlock_keeping_begin(&k, l, lease_ms);
    k.is_end = is_end;
    if (event.code == RLOCK_UNDER_WAY)
        event.code = rlock_drive(l->client, rlock_keeping_step, &k);
    if (event.code == RLOCK_OK && left_ms != NULL)
        *left_ms = k.part.left_ms;
    event.keys = l->granted;
    return rlock_leave(l->client, event);
}

int rlock_extend(struct rlock *l, uint32_t lease_ms)
{
    return keep_call(l, lease_ms, false, NULL);
}

int rlock_shorten(struct rlock *l, uint32_t lease_ms)
{
    return keep_call(l, lease_ms, true, NULL);
}

int rlock_verify(struct rlock *l, int64_t *left_ms)
{
    int64_t ms = -1;
    int code = keep_call(l, 0, false, &ms);

    if (code == RLOCK_OK && ms < 0)
        ms = l->deadline_ms - rlock_now_ms();
    if (left_ms != NULL)
        *left_ms = ms;
    return code;
}

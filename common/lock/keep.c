/* keep: extends the lease of keys that are still ours, or only checks them. Extend,
 * verify and the renewer use the same call over parts. */
#include <string.h>

#include "common/lock/internal.h"

/* ---- the script ---- */

void ll_fill_keep(struct ll_round *r, struct ll_node *node)
{
    const struct ll_kept *call = r->arg;

    ll_eval(r, node, 1 + call->keys, 2 + 3 * call->n);
    ll_put_word(&node->out, r->c->last_key);
    for (size_t i = 0; i < call->n; i++) {
        const struct ll_lock *l = call->parts[i].l;

        for (size_t k = 0; (k = ll_next_held(l, k)) < l->n; k++)
            ll_put_name(&node->out, l, k);
    }
    ll_put_window(r, node);
    for (size_t i = 0; i < call->n; i++) {
        ll_put(&node->out, call->parts[i].l->mark, LL_NONCE_HEX + 1);
        ll_put_number(&node->out, call->parts[i].ttl_ms);
        ll_put_number(&node->out, (int64_t)call->parts[i].l->granted);
    }
}

/* ---- answers ---- */

/* '1' ours or '0' not ours, by a majority; '?': too few nodes have answered. */
static char opinion(const struct ll_round *r, size_t key)
{
    size_t ours = 0, not_ours = 0;

    for (size_t i = 0; i < r->c->node_ct; i++) {
        const char *said = ll_said(r, i);

        ours += said != NULL && said[key] == '1' ? 1 : 0;
        not_ours += said != NULL && said[key] != '1' ? 1 : 0;
    }
    if (ours >= ll_majority(r->c))
        return '1';
    return not_ours > r->c->node_ct - ll_majority(r->c) ? '0' : '?';
}

static void mark(struct ll_part *part, const char *opinions)
{
    struct ll_lock *l = part->l;

    part->code = LL_OK;
    for (size_t i = 0; (i = ll_next_held(l, i)) < l->n; i++) {
        if (*opinions++ == '1')
            continue;
        part->code = LL_LOST;
        l->slots[i].code = LL_LOST;
    }
}

/* The shortest time left that any node reports; -1: none does. */
static int64_t least_left(const struct ll_round *r)
{
    int64_t least_ms = INT64_MAX, ms;

    for (size_t i = 0; (i = ll_next(r->c, r->answered, i)) < r->c->node_ct; i++) {
        const redisReply *reply = r->c->nodes[i].replies[0];

        if (reply->elements == 2 && ll_reply_number(reply->element[1], &ms) && ms >= 0)
            least_ms = ll_least(least_ms, ms);
    }
    return least_ms != INT64_MAX ? least_ms : -1;
}

int ll_read_keep(const struct ll_round *r, const struct ll_kept *call)
{
    char opinions[LL_KEYS_MAX];
    size_t at = 0;

    for (size_t key = 0; key < call->keys; key++) {
        opinions[key] = opinion(r, key);
        if (opinions[key] == '?')
            return ll_too_few(r);
    }
    for (size_t i = 0; i < call->n; at += call->parts[i].l->granted, i++) {
        mark(&call->parts[i], opinions + at);
        call->parts[i].left_ms = least_left(r);
    }
    return LL_OK;
}

int ll_keep(struct ll_client *c, struct ll_part *parts, size_t n)
{
    struct ll_kept call = {.parts = parts, .n = n};
    struct ll_round r = ll_round_of(c, parts[0].l, LUA_KEEP, ll_fill_keep, &call);

    for (size_t i = 0; i < n; i++)
        call.keys += parts[i].l->granted;
    r.enough = ll_is_all_ours;
    ll_round_run(&r);
    return ll_read_keep(&r, &call);
}

/* ---- extend, verify ---- */

int ll_note_kept(struct ll_lock *l, int code, int64_t deadline_ms)
{
    if (code == LL_LOST) {
        l->lost = true;
        (void)ll_fail_as(l->client, LL_LOST);
    }
    if (code == LL_OK && deadline_ms > l->deadline_ms)
        l->deadline_ms = deadline_ms;
    return code;
}

static int keep(struct ll_lock *l, uint32_t lease_ms, int64_t *left_ms)
{
    struct ll_part part = {.l = l, .ttl_ms = lease_ms};
    int64_t deadline_ms;
    int code;

    if (l->granted == 0 || l->released || l->releasing)
        return ll_fail(l->client, LL_E_INVAL, "the lock is not held");
    if (l->lost)
        return ll_fail_as(l->client, LL_LOST);
    code = ll_gather(l->client, false);
    if (code != LL_OK)
        return code;
    deadline_ms = ll_deadline(lease_ms); /* no command was sent */
    code = ll_keep(l->client, &part, 1);
    if (code == LL_OK) {
        *left_ms = part.left_ms;
        code = part.code;
    }
    return ll_note_kept(l, code, lease_ms > 0 ? deadline_ms : 0);
}

/* left_ms NULL: an extend, else a check. */
static int keep_call(struct ll_lock *l, uint32_t lease_ms, int64_t *left_ms)
{
    struct ll_event event = {LL_EV_EXTEND, .us = ll_now_us()};
    int64_t unused_ms;
    int code = ll_enter(l->client);

    if (code == LL_OK && left_ms == NULL)
        code = ll_check_lease(l, lease_ms);
    if (code != LL_OK)
        return code;
    event.code = keep(l, lease_ms, left_ms != NULL ? left_ms : &unused_ms);
    event.keys = l->granted;
    return ll_leave(l->client, event);
}

int ll_extend(struct ll_lock *l, uint32_t lease_ms)
{
    return keep_call(l, lease_ms, NULL);
}

int ll_verify(struct ll_lock *l, int64_t *left_ms)
{
    int code;

    *left_ms = -1;
    code = keep_call(l, 0, left_ms);
    if (code == LL_OK && *left_ms < 0)
        *left_ms = l->deadline_ms - ll_now_ms();
    return code;
}

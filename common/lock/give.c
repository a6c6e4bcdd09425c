/* give: release of a lock of ours or of a dead process: compares the nonce and deletes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/internal.h"

void ll_fill_give(struct ll_round *r, struct ll_node *node)
{
    const struct ll_span *s = r->arg;

    ll_eval(r, node, s->n + 1, 2);
    ll_put_span(&node->out, s);
    if (s->l->seen != NULL)
        ll_put(&node->out, s->l->seen, s->l->seen_len);
    else
        ll_put_word(&node->out, s->l->mark);
    ll_put_word(&node->out, s->l->seen != NULL ? "whole" : "");
}

static bool is_same_server(const struct ll_round *r, const struct ll_lock *l, size_t i)
{
    const char *run_id = r->c->nodes[i].run_id; /* lock_async has nodes of its own */

    return run_id[0] != '\0' && strcmp(l->run_ids[i], run_id) == 0;
}

/* Code of the key j, of which the nodes said so (NULL: nothing). A node without an
 * answer counts as ours if its grant was still running, or if an earlier try may have
 * deleted it. Of any holder one node's key is enough. */
static int code_of(const struct ll_round *r,
                   const struct ll_lock *l,
                   const struct ll_slot *slot,
                   const char *const *all,
                   size_t j)
{
    size_t ours = 0, foreign = 0, silent = 0;

    for (size_t i = 0; i < r->c->node_ct; i++) {
        char said = all[i] != NULL ? all[i][j] : '\0';

        if (said == '1' || (l->is_forced && said != '\0' && ll_has(r->unanswered, i)) ||
            (ll_has(slot->gone, i) && is_same_server(r, l, i)))
            ours++;
        foreign += said == '-' ? 1 : 0;
        silent += said == '\0' ? 1 : 0;
    }
    if (ours >= (l->is_forced ? 1 : ll_majority(r->c)))
        return LL_OK;
    return foreign > 0 && foreign + silent >= ll_majority(r->c) ? LL_NOT_OWNER
                                                                : LL_GONE;
}

/* Notes the keys that were deleted, or may have been (no answer). A single server that
 * answered with an error has deleted nothing. */
static void note_deletions(const struct ll_round *r, const struct ll_span *s)
{
    for (size_t i = 0; i < r->c->node_ct; i++) {
        const char *said = ll_said(r, i);
        bool is_silent =
            ll_has(r->unanswered, i) || (said == NULL && r->c->node_ct > 1);

        for (size_t j = 0; j < s->n; j++) {
            struct ll_slot *slot = ll_span_slot(s, j);

            if (ll_has(slot->grants, i) &&
                (is_silent || (said != NULL && said[j] == '1')))
                slot->gone |= (unsigned char)(1U << i);
        }
    }
}

int ll_read_give(const struct ll_round *r, const struct ll_span *s, bool was_valid)
{
    struct ll_lock *l = s->l;
    const char *said[LL_NODES_MAX];
    size_t answers = 0;

    for (size_t i = 0; i < r->c->node_ct; i++) {
        said[i] = ll_said(r, i);
        answers += said[i] != NULL ? 1 : 0;
    }
    if (was_valid)
        note_deletions(r, s);
    if (answers < ll_majority(r->c))
        return ll_too_few(r);
    l->release_code = LL_OK;
    for (size_t j = 0; j < s->n; j++) {
        struct ll_slot *slot = ll_span_slot(s, j);
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

size_t ll_pick(const struct ll_lock *l, size_t *index)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++) {
        if (l->slots[i].held || l->uncertain)
            index[n++] = i;
    }
    return n;
}

/* Nodes of a quorum are told though they are too few: their grants are in the way of
 * others. */
int ll_give_all(struct ll_lock *l)
{
    bool was_valid = ll_was_valid(l);
    struct ll_span s = {.l = l, .index = l->table, .n = ll_pick(l, l->table)};
    struct ll_round r = ll_round_of(l->client, l, LUA_RELEASE, ll_fill_give, &s);
    int code;

    l->releasing = true;
    code = ll_gather(l->client, false);
    if (code != LL_OK && code != LL_E_NO_QUORUM)
        return code;
    r.enough = ll_is_all_ours;
    ll_round_run(&r);
    return ll_read_give(&r, &s, was_valid);
}

int ll_release(struct ll_lock *l)
{
    struct ll_event event = {LL_EV_RELEASE, LL_GONE, l->granted, .us = ll_now_us()};
    int code = ll_enter(l->client);

    if (code != LL_OK)
        return code;
    if (l->released) {
        event.code = l->release_code;
    } else if (l->granted > 0 || l->uncertain) {
        ll_renew_forget(l);
        event.code = ll_give_all(l);
    }
    return ll_leave(l->client, event);
}

/* ---- without a command to the server ---- */

void ll_abandon(struct ll_lock *l)
{
    ll_renew_forget(l);
    if (l->async_call != NULL)
        l->client->async_forget(l);
    ll_clear(l);
}

void ll_free(struct ll_lock *l)
{
    if (l == NULL)
        return;
    ll_abandon(l);
    ll_free_names(l);
    free(l);
}

/* ---- of others ---- */

int64_t ll_value_token(const char *value, size_t len)
{
    redisReply digits = {.type = REDIS_REPLY_STRING};

    if (len <= LL_NONCE_HEX + 1 || value[LL_NONCE_HEX] != '|' ||
        strspn(value, "0123456789abcdef") != LL_NONCE_HEX)
        return 0;
    digits.str = (char *)(uintptr_t)value + LL_NONCE_HEX + 1; /* it is only read */
    digits.len = len - LL_NONCE_HEX - 1;
    return ll_reply_token(&digits);
}

/* Releases as if the lock were ours. *freed: number of keys deleted. */
static int
give_as(struct ll_lock *l, const struct ll_key *keys, size_t n, size_t *freed)
{
    int code = ll_store_names(l, keys, n);

    if (code == LL_OK) {
        l->uncertain = true; /* all its keys that may be held */
        code = ll_give_all(l);
    }
    for (size_t i = 0; code >= 0 && i < n; i++)
        *freed += l->slots[i].code == LL_OK ? 1 : 0;
    return code;
}

int ll_release_dead(struct ll_client *c,
                    const char *nonce,
                    const struct ll_key *keys,
                    size_t n,
                    size_t *freed)
{
    int code = ll_enter(c);
    struct ll_lock *l;

    *freed = 0;
    if (code != LL_OK)
        return code;
    if (strspn(nonce, "0123456789abcdef") != LL_NONCE_HEX ||
        nonce[LL_NONCE_HEX] != '\0')
        return ll_fail(c, LL_E_INVAL, "a nonce is %d hexadecimal digits", LL_NONCE_HEX);
    l = ll_new(c);
    if (l == NULL)
        return ll_fail_as(c, LL_E_NOMEM);
    (void)snprintf(l->mark, sizeof l->mark, "%s|", nonce);
    code = give_as(l, keys, n, freed);
    ll_free(l);
    return code < 0 ? code : LL_OK;
}

int ll_force_release(struct ll_client *c,
                     const struct ll_key *key,
                     const char *value,
                     size_t value_len)
{
    size_t freed = 0;
    int code = ll_enter(c);
    struct ll_lock *l;

    if (code != LL_OK)
        return code;
    l = ll_new(c);
    if (l == NULL)
        return ll_fail_as(c, LL_E_NOMEM);
    l->is_forced = true;
    l->seen = value != NULL ? value : "";
    l->seen_len = value != NULL ? value_len : 0;
    if (value != NULL && ll_value_token(value, value_len) > 0) { /* of all nodes */
        l->seen = NULL;
        (void)memcpy(l->mark, value, LL_NONCE_HEX + 1);
    }
    code = give_as(l, key, 1, &freed);
    ll_free(l);
    return code;
}

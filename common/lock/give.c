/* give: release of a lock of ours or of a dead process: compares the nonce and deletes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/operation.h"

void rlock_fill_give(struct rlock_round *r, struct rlock_node *node)
{
    const struct rlock_span *s = r->arg;

    rlock_eval(r, node, s->n + 1, 2);
    rlock_put_span(&node->link.out, s);
    if (s->l->seen != NULL)
        rlock_put(&node->link.out, s->l->seen, s->l->seen_len);
    else
        rlock_put_word(&node->link.out, s->l->mark);
    rlock_put_word(&node->link.out, s->l->seen != NULL ? "whole" : "");
}

static bool
is_same_server(const struct rlock_round *r, const struct rlock_lock *l, size_t i)
{
    const char *run_id = r->c->nodes[i].run_id;

    return run_id[0] != '\0' && strcmp(l->run_ids[i], run_id) == 0;
}

/* Code of the key j, of which the nodes said so (NULL: nothing). A node without an
 * answer counts as ours if its grant was still running, or if an earlier try may have
 * deleted it. Of any holder one node's key is enough. */
static int code_of(const struct rlock_round *r,
                   const struct rlock_lock *l,
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
    struct rlock_lock *l = s->l;
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

size_t rlock_pick(const struct rlock_lock *l, size_t *index)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++) {
        if (l->slots[i].held || l->uncertain)
            index[n++] = i;
    }
    return n;
}

int rlock_giving_begin(struct rlock_giving *g, struct rlock_lock *l)
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
    struct rlock_lock *l = g->l;

    l->releasing = true;
    g->was_valid = rlock_was_valid(l);
    g->span =
        (struct rlock_span){.l = l, .index = l->table, .n = rlock_pick(l, l->table)};
    g->gather = (struct rlock_gather){.limit_ms = g->limit_ms};
    g->round = rlock_round_of(l->client, l, LUA_RELEASE, g->limit_ms, rlock_fill_give,
                              &g->span);
    g->round.enough = rlock_is_all_ours;
    g->stage = RLOCK_GATHERING;
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
    code = rlock_round_step(&g->round);
    if (code == RLOCK_UNDER_WAY)
        return code;
    code = rlock_read_give(&g->round, &g->span, g->was_valid);
    rlock_round_clear(&g->round);
    return code;
}

void rlock_giving_clear(struct rlock_giving *g)
{
    rlock_round_clear(&g->round);
}

void rlock_give_late(struct rlock_lock *l)
{
    struct rlock_client *c = l->client;
    struct rlock_span s = {.l = l, .index = l->table, .n = rlock_pick(l, l->table)};
    struct rlock_round r = rlock_round_of(c, l, LUA_RELEASE, 0, rlock_fill_give, &s);

    if (c->node_ct > 1 || !c->nodes[0].is_stale)
        return;
    rlock_round_tell(&r, 1);
    rlock_socket_leave(c, &c->nodes[0]);
    rlock_node_close(&c->nodes[0]);
}

int rlock_release(struct rlock_lock *l)
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

/* ---- of others ---- */

int64_t rlock_value_token(const char *value, size_t len)
{
    redisReply digits = {.type = REDIS_REPLY_STRING};

    if (len <= RLOCK_NONCE_HEX + 1 || value[RLOCK_NONCE_HEX] != '|' ||
        strspn(value, "0123456789abcdef") != RLOCK_NONCE_HEX)
        return 0;
    digits.str = (char *)(uintptr_t)value + RLOCK_NONCE_HEX + 1; /* it is only read */
    digits.len = len - RLOCK_NONCE_HEX - 1;
    return rlock_reply_token(&digits);
}

/* Releases as if the lock were ours. *freed: number of keys deleted. */
static int
give_as(struct rlock_lock *l, const struct rlock_key *keys, size_t n, size_t *freed)
{
    struct rlock_giving g = {.l = l, .limit_ms = rlock_call_end(l->client)};
    int code = rlock_store_names(l, keys, n);

    if (code == RLOCK_OK) {
        l->uncertain = true; /* all its keys that may be held */
        code = rlock_drive(l->client, rlock_giving_step, &g);
    }
    for (size_t i = 0; code >= 0 && i < n; i++)
        *freed += l->slots[i].code == RLOCK_OK ? 1 : 0;
    return code;
}

int rlock_release_dead(struct rlock_client *c,
                       const char *nonce,
                       const struct rlock_key *keys,
                       size_t n,
                       size_t *freed)
{
    int code = rlock_check_owner(c);
    struct rlock_lock *l;

    *freed = 0;
    if (code != RLOCK_OK)
        return code;
    if (strspn(nonce, "0123456789abcdef") != RLOCK_NONCE_HEX ||
        nonce[RLOCK_NONCE_HEX] != '\0')
        return rlock_fail(c, RLOCK_E_INVAL, "a nonce is %d hexadecimal digits",
                          RLOCK_NONCE_HEX);
    l = rlock_new(c);
    if (l == NULL)
        return rlock_fail_as(c, RLOCK_E_NOMEM);
    (void)snprintf(l->mark, sizeof l->mark, "%s|", nonce);
    code = give_as(l, keys, n, freed);
    rlock_free_memory(l);
    return code < 0 ? code : RLOCK_OK;
}

int rlock_force_release(struct rlock_client *c,
                        const struct rlock_key *key,
                        const char *value,
                        size_t value_len)
{
    size_t freed = 0;
    int code = rlock_check_owner(c);
    struct rlock_lock *l;

    if (code != RLOCK_OK)
        return code;
    l = rlock_new(c);
    if (l == NULL)
        return rlock_fail_as(c, RLOCK_E_NOMEM);
    l->is_forced = true;
    l->seen = value != NULL ? value : "";
    l->seen_len = value != NULL ? value_len : 0;
    if (value != NULL && rlock_value_token(value, value_len) > 0) { /* of all nodes */
        l->seen = NULL;
        (void)memcpy(l->mark, value, RLOCK_NONCE_HEX + 1);
    }
    code = give_as(l, key, 1, &freed);
    rlock_free_memory(l);
    return code;
}

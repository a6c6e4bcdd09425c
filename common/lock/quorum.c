/* quorum: one tenure over a majority of independent servers, with tokens that only
 * grow.
 *
 * Every node counts for itself. It grants a free key with a step of its counter and
 * stores the grant with the nonce. The token is the highest grant of a majority; nodes
 * that granted less are told the token, which they take only while that very grant is
 * in place. Two tenures share a node, and the later one found the earlier one's token
 * in its counter: no clock is needed for that. */
#include <stdio.h>
#include <time.h>

#include "common/lock/quorum_attempt.h"

/* The token: the highest grant of all keys that have a majority. Nodes that granted
 * just that need not be told. False: somebody must be, and it is worth it. */
static bool choose_token(struct ll_quorum_attempt *a)
{
    size_t node_ct = a->l->client->node_ct;
    bool done = true, whole = true;

    for (size_t i = 0; i < a->n; i++) {
        whole = whole && ll_quorum_has_majority(a, i);
        for (size_t node = 0; node < node_ct && ll_quorum_has_majority(a, i); node++) {
            int64_t grant = ll_quorum_slot(a, i)->grants[node];

            a->token = grant > a->token ? grant : a->token;
        }
    }
    for (size_t i = 0; i < a->n; i++) {
        struct ll_slot *slot = ll_quorum_slot(a, i);

        slot->acks = 0;
        for (size_t node = 0; node < node_ct; node++)
            slot->acks += a->token > 0 && slot->grants[node] == a->token ? 1 : 0;
        done = done && (!ll_quorum_has_majority(a, i) ||
                        slot->acks >= ll_quorum_majority(a->l->client));
    }
    return done || (a->mode == LL_ALL && !whole);
}

/* ---- what came of it ---- */

/* Whether a key that was not granted may hold something somewhere: granted by a node
 * that answered, or perhaps by one that did not. */
static bool may_be_held(const struct ll_quorum_attempt *a, size_t i)
{
    size_t asked = 0;

    for (size_t node = 0; node < a->l->client->node_ct; node++)
        asked += a->l->asked >> node & 1;
    return ll_quorum_grants(a, i) > 0 || a->voters + a->amnesic < asked;
}

/* Keys that were not granted are given back everywhere, and are busy from here on. The
 * words of the refusal stay. */
static int give_back_losers(struct ll_quorum_attempt *a, int code)
{
    char words[LL_ERROR_MAX];
    size_t index[LL_KEYS_MAX];
    size_t n = 0;
    int undo;

    (void)snprintf(words, sizeof words, "%s", a->l->client->error);
    for (size_t i = 0; i < a->n; i++) {
        if (ll_quorum_slot(a, i)->code == LL_OK)
            continue;
        if (may_be_held(a, i))
            index[n++] = a->first + i;
        ll_quorum_slot(a, i)->code = LL_BUSY;
        ll_quorum_slot(a, i)->token = 0;
    }
    undo = n > 0 ? ll_quorum_give_back(a->l, index, n) : LL_OK;
    return undo == LL_OK ? ll_fail(a->l->client, code, "%s", words) : undo;
}

/* Why fewer keys were granted than wanted. With a majority voting it is because
 * somebody else has a key on some node; else the nodes are at fault. */
static int why_not(const struct ll_quorum_attempt *a)
{
    struct ll_client *c = a->l->client;
    size_t majority = ll_quorum_majority(c);
    bool busy = false;

    for (size_t i = 0; i < a->n; i++) {
        for (size_t node = 0; node < c->node_ct; node++)
            busy = busy || ll_quorum_slot(a, i)->grants[node] == LL_BUSY_HERE;
    }
    if (a->amnesic > c->node_ct - majority)
        return ll_fail(c, LL_E_AMNESIA, "%s", ll_strerror(LL_E_AMNESIA));
    if (busy && a->voters >= majority && !a->too_late)
        return LL_BUSY;
    if (a->voters >= majority)
        return ll_fail(c, LL_E_NO_QUORUM, "the lease was over before it was confirmed");
    return ll_fail(c, LL_E_NO_QUORUM, "%zu of %zu nodes voted (%zu without memory)",
                   a->voters, c->node_ct, a->amnesic);
}

static int conclude(struct ll_quorum_attempt *a)
{
    struct ll_client *c = a->l->client;
    size_t granted = 0;

    a->too_late = ll_now_ms() >= a->l->deadline_ms;
    for (size_t i = 0; i < a->n; i++) {
        bool ok = !a->too_late && ll_quorum_slot(a, i)->acks >= ll_quorum_majority(c);

        ll_quorum_slot(a, i)->code = ok ? LL_OK : LL_BUSY;
        ll_quorum_slot(a, i)->token = ok ? a->token : 0;
        granted += ok ? 1 : 0;
    }
    if (a->token > c->last_token)
        c->last_token = a->token;
    if (granted == a->n)
        return LL_OK;
    if (granted > 0 && a->mode == LL_ANY)
        return LL_PARTIAL;
    for (size_t i = 0; i < a->n; i++)
        ll_quorum_slot(a, i)->code = LL_BUSY;
    return why_not(a);
}

static int acquire_chunk(struct ll_quorum_attempt *a)
{
    struct timespec now;
    int code;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    a->clock_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    for (size_t i = 0; i < a->n; i++)
        *ll_quorum_slot(a, i) = (struct ll_slot){.code = LL_BUSY};
    code = ll_quorum_ask(a);
    if (code == LL_OK && !choose_token(a))
        code = ll_quorum_write_back(a);
    code = code == LL_OK ? conclude(a) : code;
    return code == LL_OK ? LL_OK : give_back_losers(a, code);
}

int ll_quorum_acquire(struct ll_lock *l, enum ll_mode mode, uint32_t ttl_ms)
{
    struct ll_client *c = l->client;
    int64_t node_ms = ll_quorum_node_ms(c, l->lease_ms);
    size_t asked = 0;
    bool doubted[LL_NODES_MAX] = {0};
    bool readmit = false;
    int code = LL_OK;

    if (ttl_ms > c->max_lease_ms)
        return ll_fail(c, LL_E_INVAL, "the lease is longer than max_lease_ms");
    for (size_t i = 0; i < l->n; i++)
        l->slots[i].code = LL_BUSY;
    l->asked = 0;
    code = ll_quorum_gather(c, node_ms);
    l->deadline_ms = ll_deadline(l->lease_ms); /* nothing was sent until here */
    while (asked < l->n && code >= 0 && (mode == LL_ANY || code == LL_OK)) {
        struct ll_quorum_attempt a = {
            .l = l, .first = asked, .mode = mode, .ttl_ms = ttl_ms};

        a.n = l->n - asked < LL_KEYS_MAX ? l->n - asked : LL_KEYS_MAX;
        a.node_ms = node_ms;
        ll_quorum_records(c, &a.records);
        code = acquire_chunk(&a);
        asked += a.n;
        readmit = readmit || a.readmit;
        for (size_t i = 0; i < c->node_ct; i++)
            doubted[i] = doubted[i] || a.doubted[i];
    }
    l->granted = 0;
    for (size_t i = 0; i < l->n; i++)
        l->granted += l->slots[i].code == LL_OK ? 1 : 0;
    if (readmit)
        ll_quorum_readmit(c, node_ms, doubted);
    for (size_t i = 0; i < c->node_ct; i++) {
        if (doubted[i])
            ll_quorum_doubt(c, i);
    }
    if (code < 0 || (mode == LL_ALL && code != LL_OK))
        return code;
    if (l->granted == l->n)
        return LL_OK;
    return l->granted > 0 ? LL_PARTIAL : LL_BUSY;
}

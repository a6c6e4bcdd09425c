/* quorum_seed: nodes without memory. They stay out until whatever they may have granted
 * before is over, then begin again above every token that a majority of the others may
 * have seen; when too few others are left, above a floor that the caller knows. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/quorum.h"

/* What the nodes said of themselves. */
struct survey {
    bool seen[LL_NODES_MAX];
    bool votes[LL_NODES_MAX];
    int64_t left_ms[LL_NODES_MAX];
    size_t voters, amnesic;
    int64_t
        highest; /* counter of any node, also what a node without memory still has */
};

struct question {
    int64_t wait_ms;
    int64_t floor; /* -1: only look */
    struct ll_quorum_records records;
};

int64_t ll_quorum_wait_ms(const struct ll_client *c)
{
    return c->max_lease_ms + c->max_lease_ms / 100 + 10;
}

static int fill(struct ll_quorum_round *r, size_t node)
{
    const struct question *q = r->arg;
    const struct ll_node *at = &r->c->nodes[node];

    ll_quorum_word(r, q->records.node, strlen(q->records.node));
    ll_quorum_word(r, q->records.note, strlen(q->records.note));
    ll_quorum_word(r, at->ident, strlen(at->ident));
    ll_quorum_number(r, q->wait_ms);
    if (q->floor < 0)
        ll_quorum_word(r, "", 0);
    else
        ll_quorum_number(r, q->floor);
    return 2;
}

static void take(struct survey *s, size_t node, const redisReply *reply)
{
    int64_t counter;

    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
        reply->element[1]->str == NULL)
        return;
    s->seen[node] = true;
    s->votes[node] = reply->element[0]->integer == 1;
    s->left_ms[node] = reply->element[2]->integer;
    counter = strtoll(reply->element[1]->str, NULL, 10);
    s->highest = counter > s->highest ? counter : s->highest;
    s->voters += s->votes[node] ? 1 : 0;
    s->amnesic += s->votes[node] ? 0 : 1;
}

/* Asks all nodes, or seeds those of `seeded` from the floor. */
static int ask(struct ll_client *c,
               struct survey *s,
               int64_t node_ms,
               int64_t floor,
               const bool *seeded)
{
    struct question q = {.wait_ms = ll_quorum_wait_ms(c), .floor = floor};
    struct ll_quorum_round r = {.c = c,
                                .script = LUA_QUORUM_NODE,
                                .node_ms = node_ms,
                                .fill = fill,
                                .arg = &q,
                                .word_max = 8};
    int code;

    *s = (struct survey){0};
    ll_quorum_records(c, &q.records);
    for (size_t i = 0; i < c->node_ct; i++)
        r.skip[i] = seeded != NULL && !seeded[i];
    code = ll_quorum_run(&r);
    for (size_t i = 0; i < c->node_ct; i++)
        take(s, i, r.replies[i]);
    ll_quorum_done(&r);
    return code;
}

/* The wait was over before the others are read: whoever counted a grant of this node
 * from before has either told them its token or given up. */
void ll_quorum_readmit(struct ll_client *c, int64_t node_ms, const bool *who)
{
    bool ready[LL_NODES_MAX] = {0};
    struct survey wait, others;
    int64_t now_ms = ll_now_ms();

    if (now_ms < c->readmit_at_ms)
        return;
    c->readmit_at_ms = now_ms + LL_QUORUM_RETRY_MS;
    for (size_t i = 0; i < c->node_ct && who != NULL; i++) {
        if (who[i])
            ll_node_disconnect(&c->nodes[i]); /* its ident is read anew */
    }
    (void)ll_quorum_gather(c, node_ms);
    if (ask(c, &wait, node_ms, -1, NULL) != LL_OK ||
        ask(c, &others, node_ms, -1, wait.votes) != LL_OK ||
        others.voters < ll_quorum_majority(c))
        return;
    for (size_t i = 0; i < c->node_ct; i++)
        ready[i] = wait.seen[i] && !wait.votes[i] && wait.left_ms[i] == 0;
    (void)ask(c, &wait, node_ms, others.highest, ready);
}

/* Milliseconds until so many nodes of the survey have waited long enough. */
static int64_t wait_for(const struct survey *s, size_t wanted)
{
    int64_t best = -1;

    for (size_t i = 0; i < LL_NODES_MAX; i++) {
        size_t ready = 0;

        for (size_t j = 0; j < LL_NODES_MAX; j++)
            ready +=
                s->seen[j] && !s->votes[j] && s->left_ms[j] <= s->left_ms[i] ? 1 : 0;
        if (s->seen[i] && !s->votes[i] && ready >= wanted &&
            (best < 0 || s->left_ms[i] < best))
            best = s->left_ms[i];
    }
    return best < 0 ? 0 : best;
}

static int seed_majority(struct ll_client *c,
                         const struct survey *s,
                         int64_t node_ms,
                         int64_t floor,
                         int64_t *wait_ms)
{
    size_t majority = ll_quorum_majority(c);
    bool ready[LL_NODES_MAX] = {0};
    struct survey after;
    int code;

    if (s->voters + s->amnesic < majority || s->amnesic <= c->node_ct - majority)
        return ll_fail(c, LL_E_NO_QUORUM,
                       "%zu nodes vote, %zu have no memory, the others are missing",
                       s->voters, s->amnesic);
    *wait_ms = wait_for(s, majority - s->voters);
    if (*wait_ms > 0)
        return ll_fail(c, LL_E_AMNESIA,
                       "leases from before may run for another %lld ms",
                       (long long)*wait_ms);
    for (size_t i = 0; i < c->node_ct; i++)
        ready[i] = s->seen[i] && !s->votes[i] && s->left_ms[i] == 0;
    code = ask(c, &after, node_ms, floor > s->highest ? floor : s->highest, ready);
    if (code == LL_OK && s->voters + after.voters < majority)
        code = ll_fail(c, LL_E_NO_QUORUM, "too few nodes took the floor");
    return code;
}

int ll_seed(struct ll_client *c, int64_t floor, int64_t *wait_ms)
{
    int64_t node_ms = c->reply_ms > 0 ? c->reply_ms : c->connect_ms;
    struct survey s;
    int code = ll_check_owner(c);

    *wait_ms = 0;
    if (code != LL_OK)
        return code;
    if (c->node_ct == 1)
        return ll_fail(c, LL_E_INVAL, "one server has an epoch; see ll_install_epoch");
    if (floor < 0 || floor > LL_QUORUM_FLOOR_MAX)
        return ll_fail(c, LL_E_INVAL, "a floor is 0 to 2^52");
    ll_disconnect(c); /* idents are read anew */
    code = ll_quorum_connect(c);
    if (code == LL_OK)
        code = ask(c, &s, node_ms, -1, NULL);
    if (code != LL_OK)
        return code;
    if (s.voters < ll_quorum_majority(c))
        return seed_majority(c, &s, node_ms, floor, wait_ms);
    if (s.amnesic > 0)
        ll_quorum_readmit(c, node_ms, NULL);
    return LL_OK;
}

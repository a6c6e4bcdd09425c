/* vote: one acquire over a majority of independent servers, with tokens that rise. A
 * single server is a majority of one.
 *
 * Every node proposes a token of its own. The token of the lock is the highest
 * proposal among the answers of a majority. Nodes that proposed less get that token
 * (the write-back) and store it only while this very grant is in place. The lock is
 * granted once a majority has proposed or stored the token: any two majorities share a
 * node, so the later acquire finds the earlier token there. Once a majority agrees,
 * slow or absent nodes are not waited for. */
#include <stdio.h>
#include <string.h>

#include "common/lock/operation.h"

/* The floor given to the nodes is ahead of their clocks by more than the clocks differ
 * and the command takes: all nodes then propose the same token, and no write-back is
 * needed. */
enum { AHEAD_MS = 5 };

/* A proposal from here on counts only if a majority proposes so high: one bad node must
 * not use up the tokens of the others. Below, a trillion tokens are left. */
#define LONE_END (RLOCK_TOKEN_END - (INT64_C(1) << 40))

/* ---- votes ---- */

/* Counts the vote of a node. Its answer is parsed like that of a single server, then
 * added to the votes of the others. */
static void read_vote(struct rlock_vote *v, size_t node, const redisReply *reply)
{
    struct rlock_client *c = v->round.c;
    int code = rlock_read_take(c, &c->nodes[node], &v->take, reply);

    v->read |= 1U << node;
    if (code < 0)
        return;
    v->valid |= 1U << node;
    for (size_t i = 0; i < v->take.s->n; i++) {
        if (rlock_vote_slot(v, i)->code == RLOCK_OK)
            rlock_vote_slot(v, i)->grants |= (unsigned char)(1U << node);
    }
    v->proposals[node] = v->take.token;
    v->far |= v->proposals[node] >= LONE_END ? 1U << node : 0;
    v->voters =
        rlock_count(v->far) >= rlock_majority(c) ? v->valid : v->valid & ~v->far;
}

/* True if a majority granted or refused every key: more answers change nothing. */
static bool is_decided(void *round)
{
    struct rlock_vote *v =
        (struct rlock_vote *)((char *)round - offsetof(struct rlock_vote, round));
    struct rlock_client *c = v->round.c;
    size_t refusals_needed = c->node_ct - rlock_majority(c) + 1;
    unsigned unread = v->round.who & ~v->read;

    for (size_t i = 0; (i = rlock_next(c, unread, i)) < c->node_ct; i++) {
        const redisReply *reply = rlock_answer(&v->round, i);

        if (v->round.calls[i].code == RLOCK_OK && reply->type == REDIS_REPLY_ARRAY &&
            reply->elements > 1)
            read_vote(v, i, reply);
    }
    if (rlock_count(v->voters) < rlock_majority(c))
        return false;
    for (size_t i = 0; i < v->take.s->n; i++) {
        if (!rlock_has_majority(v, i) &&
            rlock_count(v->voters) - rlock_count(rlock_granting(v, i)) <
                refusals_needed)
            return false;
    }
    return true;
}

/* ---- outcome ---- */

/* Releases n keys, which stand in the table of the lock, without waiting. If a node
 * misses the release, the lease ends the grant. */
static void give_back(const struct rlock_vote *v, size_t n, unsigned who)
{
    struct rlock_span s = {.l = v->l, .index = v->l->table, .n = n};
    struct rlock_round r =
        rlock_round_of(v->l->client, v->l, LUA_RELEASE, 0, rlock_fill_give, &s);

    if (n > 0)
        rlock_round_tell(&r, who);
}

/* The keys that were not granted, on all nodes that may have granted them. */
static void give_back_losers(const struct rlock_vote *v, unsigned asked)
{
    size_t n = 0;

    for (size_t i = 0; i < v->take.s->n; i++) {
        const struct rlock_slot *slot = rlock_vote_slot(v, i);

        if (slot->code != RLOCK_OK &&
            (slot->grants != 0 || v->valid != asked || v->is_written_back))
            v->l->table[n++] = rlock_span_key(v->take.s, i);
    }
    give_back(v, n, asked);
}

bool rlock_is_half_done(int code)
{
    return code == RLOCK_E_PROTO || code == RLOCK_E_AUTH || code == RLOCK_E_OOM ||
           code == RLOCK_E_UNCERTAIN;
}

static int conclude(struct rlock_vote *v, unsigned asked)
{
    struct rlock_client *c = v->round.c;
    struct rlock *l = v->take.s->l;
    size_t granted = 0;
    int code;

    for (size_t i = 0; i < v->take.s->n; i++)
        granted += rlock_has_majority(v, i) ? 1 : 0;
    if (granted < v->take.s->n && v->take.mode == RLOCK_ALL)
        granted = 0;
    for (size_t i = 0; i < v->take.s->n; i++)
        rlock_vote_slot(v, i)->code =
            granted > 0 && rlock_has_majority(v, i) ? RLOCK_OK : RLOCK_BUSY;
    if (granted > 0) /* the permits before have lower ones */
        l->token = rlock_most(l->token, v->token);
    if (granted == v->take.s->n || (granted > 0 && v->take.mode >= RLOCK_ONE))
        return RLOCK_OK;
    if (granted > 0)
        code = RLOCK_PARTIAL;
    else if (v->is_unheard)
        code = rlock_fail(c, RLOCK_E_NO_QUORUM, "too few nodes took the token");
    else
        code = rlock_count(v->voters) >= rlock_majority(c) ? RLOCK_BUSY
                                                           : rlock_too_few(&v->round);

    if (code >= 0)
        give_back_losers(v, asked);
    else if (v->round.unanswered != 0 || v->valid != 0 || rlock_is_half_done(code))
        l->uncertain = true;
    return code;
}

/* ---- take ---- */

/* Nodes that may grant: none that started lately, since it may have lost locks. */
static unsigned grantors(const struct rlock_client *c, int64_t *wait_ms)
{
    unsigned who = RLOCK_ALL_NODES;

    *wait_ms = INT64_MAX;
    for (size_t i = 0; i < c->node_ct; i++) {
        int64_t left_ms = c->nodes[i].grants_at_ms - rlock_now_ms();

        if (c->nodes[i].state != RLOCK_UP || left_ms <= 0)
            continue;
        who &= ~(1U << i);
        *wait_ms = rlock_least(*wait_ms, left_ms);
    }
    return who;
}

/* Ahead of the clocks of all nodes, but of one at which a proposal would be alone. */
static int64_t common_floor(const struct rlock_client *c, unsigned who)
{
    int64_t floor = c->floor;

    if (c->node_ct == 1)
        return floor;
    for (size_t i = 0; (i = rlock_next(c, who, i)) < c->node_ct; i++) {
        int64_t us = (rlock_now_ms() + c->nodes[i].server_ahead_ms + AHEAD_MS) * 1000;

        if (us < LONE_END)
            floor = rlock_most(floor, us);
    }
    return floor;
}

/* Of one span, in which every key is asked for by itself. */
static int begin_span(struct rlock_vote *v)
{
    struct rlock_client *c = v->l->client;
    int64_t wait_ms;

    v->take = (struct rlock_take){.s = &v->span,
                                  .mode = v->span.index != NULL ? RLOCK_ALL : v->mode,
                                  .lease_ms = v->l->lease_ms};
    v->read = v->valid = v->far = v->voters = 0;
    v->token = 0;
    v->is_unheard = v->is_written_back = false;
    (void)memset(v->proposals, 0, sizeof v->proposals);
    v->round =
        rlock_round_of(c, v->l, LUA_ACQUIRE, v->limit_ms, rlock_fill_take, &v->take);
    v->round.enough = is_decided;
    v->round.allowed = grantors(c, &wait_ms);
    v->round.who = v->round.allowed & rlock_up_nodes(c);
    if (rlock_count(v->round.who) < rlock_majority(c) && wait_ms < INT64_MAX)
        return rlock_fail(c, RLOCK_E_NO_QUORUM,
                          "%zu of %zu nodes may grant: one that started less than "
                          "max_lease_ms ago must wait another %lld ms",
                          rlock_count(v->round.who), c->node_ct, (long long)wait_ms);
    v->take.floor = common_floor(c, v->round.who);
    for (size_t i = 0; i < v->span.n; i++) {
        rlock_vote_slot(v, i)->grants = 0;
        rlock_vote_slot(v, i)->busy_ms = 0;
    }
    return RLOCK_UNDER_WAY;
}

/* False: the token is to be written back first. */
static bool read_votes(struct rlock_vote *v)
{
    struct rlock_client *c = v->round.c;
    bool is_chosen;

    for (size_t i = 0; i < c->node_ct; i++)
        memcpy(v->l->run_ids[i], c->nodes[i].run_id, sizeof v->l->run_ids[i]);
    (void)is_decided(&v->round); /* reads the answers that came last */
    is_chosen = rlock_choose_token(v) || v->take.mode == RLOCK_ANY;
    return !is_chosen || v->token == 0 || rlock_is_settled(v);
}

static int end_span(struct rlock_vote *v)
{
    int code;

    rlock_note_token(v->round.c, v->token);
    code = conclude(v, v->round.who);
    rlock_round_clear(&v->round);
    return code;
}

/* Each permit is asked for by itself, beginning at a place drawn at random: asked for
 * any permit, the nodes would grant different ones. */
static void begin_vote(struct rlock_vote *v)
{
    v->span = (struct rlock_span){.l = v->l, .n = v->l->n};
    v->l->token = 0;
    if (v->mode < RLOCK_ONE || v->l->client->node_ct == 1)
        return;
    v->first = (size_t)rlock_jitter_ms((int64_t)v->l->n) - 1;
    v->permit = v->first;
    v->span = (struct rlock_span){.l = v->l, .index = &v->permit, .n = 1};
}

/* True if there is another permit to be asked for: the last one is busy, or more are
 * wanted, and enough of them are left. */
static bool begin_next(struct rlock_vote *v, int code)
{
    if (v->span.index == NULL || (code != RLOCK_OK && code != RLOCK_BUSY))
        return false;
    v->taken += code == RLOCK_OK ? 1 : 0;
    v->tried++;
    if (v->taken == rlock_wanted(v->mode) ||
        v->taken + v->l->n - v->tried < rlock_wanted(v->mode))
        return false;
    v->permit = (v->first + v->tried) % v->l->n;
    v->gather = (struct rlock_gather){.is_take = true, .limit_ms = v->limit_ms};
    return true;
}

/* Fewer permits than are wanted are no use. */
static int give_back_permits(const struct rlock_vote *v)
{
    struct rlock *l = v->l;
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++) {
        if (l->slots[i].code == RLOCK_OK)
            l->table[n++] = i;
        l->slots[i].code = RLOCK_BUSY;
    }
    l->token = 0;
    give_back(v, n, RLOCK_ALL_NODES);
    return rlock_fail_as(l->client, RLOCK_BUSY);
}

int rlock_vote_step(struct rlock_vote *v)
{
    int code = RLOCK_UNDER_WAY;

    for (;;) {
        switch (v->stage) {
        case RLOCK_UNBEGUN:
            begin_vote(v);
            code = begin_span(v);
            v->stage = RLOCK_ASKING;
            break;
        case RLOCK_ASKING:
            if (rlock_round_step(&v->round) == RLOCK_UNDER_WAY)
                return RLOCK_UNDER_WAY;
            v->stage = RLOCK_WRITING_BACK;
            if (read_votes(v))
                code = end_span(v);
            else
                rlock_begin_write_back(v);
            break;
        case RLOCK_WRITING_BACK:
            if (rlock_round_step(&v->back) == RLOCK_UNDER_WAY)
                return RLOCK_UNDER_WAY;
            rlock_read_write_back(v);
            code = end_span(v);
            break;
        case RLOCK_NEXT:
            code = rlock_gather_step(v->l->client, &v->gather);
            if (code != RLOCK_OK)
                return code;
            code = begin_span(v);
            v->stage = RLOCK_ASKING;
            break;
        }
        if (code == RLOCK_UNDER_WAY)
            continue;
        if (begin_next(v, code))
            v->stage = RLOCK_NEXT;
        else if (code >= 0 && v->taken > 0 && v->taken < rlock_wanted(v->mode))
            return give_back_permits(v);
        else
            return code;
    }
}

void rlock_vote_clear(struct rlock_vote *v)
{
    rlock_round_clear(&v->round);
    rlock_round_clear(&v->back);
}

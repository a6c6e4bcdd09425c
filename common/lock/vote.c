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

#include "common/lock/internal.h"

/* The floor given to the nodes is ahead of their clocks by more than the clocks differ
 * and the command takes: all nodes then propose the same token, and no write-back is
 * needed. */
enum { AHEAD_MS = 5 };

/* A proposal from here on counts only if a majority proposes so high: one bad node must
 * not use up the tokens of the others. Below, a trillion tokens are left. */
#define LONE_END (RLOCK_TOKEN_END - (INT64_C(1) << 40))

/* ---- votes ---- */

/* The answers of the nodes about the keys of one span. */
struct vote {
    struct rlock_take take;
    struct rlock_round round;
    unsigned read;   /* nodes (bits) whose answer was read */
    unsigned valid;  /* of these: valid answers */
    unsigned far;    /* of these: proposals from LONE_END on */
    unsigned voters; /* of the valid ones: those whose votes count */
    int64_t proposals[RLOCK_NODES_MAX];
    int64_t token;
    bool is_unheard; /* a node did not answer the write-back */
    bool is_written_back;
};

static struct rlock_slot *slot_of(const struct vote *v, size_t i)
{
    return rlock_span_slot(v->take.s, i);
}

/* Nodes (bits) that granted a key. */
static unsigned grants(const struct vote *v, size_t i)
{
    return slot_of(v, i)->grants & v->voters;
}

static bool has_majority(const struct vote *v, size_t i)
{
    return rlock_count(grants(v, i)) >= rlock_majority(v->round.c);
}

/* Counts the vote of a node. Its answer is parsed like that of a single server, then
 * added to the votes of the others. */
static void read_vote(struct vote *v, size_t node, const redisReply *reply)
{
    struct rlock_client *c = v->round.c;
    int code = rlock_read_take(c, &c->nodes[node], &v->take, reply);

    v->read |= 1U << node;
    if (code < 0)
        return;
    v->valid |= 1U << node;
    for (size_t i = 0; i < v->take.s->n; i++) {
        if (slot_of(v, i)->code == RLOCK_OK)
            slot_of(v, i)->grants |= (unsigned char)(1U << node);
    }
    v->proposals[node] = v->take.token;
    v->far |= v->proposals[node] >= LONE_END ? 1U << node : 0;
    v->voters =
        rlock_count(v->far) >= rlock_majority(c) ? v->valid : v->valid & ~v->far;
}

/* True if a majority granted or refused every key: more answers change nothing. */
static bool is_decided(void *round)
{
    struct vote *v = (struct vote *)((char *)round - offsetof(struct vote, round));
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
        if (!has_majority(v, i) &&
            rlock_count(v->voters) - rlock_count(grants(v, i)) < refusals_needed)
            return false;
    }
    return true;
}

/* ---- write-back ---- */

static void fill_raise(struct rlock_round *r, struct rlock_node *node)
{
    const struct vote *v = r->arg;
    const struct rlock_lock *l = v->take.s->l;
    char value[RLOCK_NONCE_SIZE + 24];

    (void)snprintf(value, sizeof value, "%s%lld", l->mark,
                   (long long)v->proposals[node - r->c->nodes]);
    rlock_eval(r, node, v->take.s->n + 1, 4);
    rlock_put_span(&node->link.out, v->take.s);
    rlock_put_word(&node->link.out, value);
    rlock_put_number(&node->link.out, v->token);
    rlock_put_window(r, node);
}

/* The highest proposal for the keys with a majority; true if all keys have one. */
static bool choose_token(struct vote *v)
{
    const struct rlock_client *c = v->round.c;
    bool is_whole = true;

    for (size_t i = 0; i < v->take.s->n; i++) {
        unsigned who = grants(v, i);

        if (!has_majority(v, i)) {
            is_whole = false;
            continue;
        }
        for (size_t node = 0; (node = rlock_next(c, who, node)) < c->node_ct; node++)
            v->token = rlock_most(v->token, v->proposals[node]);
    }
    return is_whole;
}

/* Nodes (bits) that proposed the token. */
static unsigned agreeing(const struct vote *v)
{
    unsigned who = 0;

    for (size_t node = 0; node < v->round.c->node_ct; node++)
        who |= v->proposals[node] == v->token ? 1U << node : 0;
    return who;
}

static bool is_settled(const struct vote *v)
{
    unsigned who = agreeing(v);

    for (size_t i = 0; i < v->take.s->n; i++) {
        if (has_majority(v, i) &&
            rlock_count(grants(v, i) & who) < rlock_majority(v->round.c))
            return false;
    }
    return true;
}

static bool has_majority_answered(void *round)
{
    const struct rlock_round *r = round;
    const struct vote *v = r->arg;
    unsigned who = agreeing(v);

    for (size_t i = 0; (i = rlock_next(r->c, r->who, i)) < r->c->node_ct; i++)
        who |= r->calls[i].code == RLOCK_OK ? 1U << i : 0;
    return rlock_count(who) >= rlock_majority(r->c);
}

/* A node that stored the token counts as one that proposed it, for the keys of its
 * answer. */
static void write_back(struct vote *v)
{
    struct rlock_client *c = v->round.c;
    struct rlock_round r =
        rlock_round_of(c, v->take.s->l, LUA_RAISE, v->round.limit_ms, fill_raise, v);
    unsigned agree = agreeing(v);

    v->is_written_back =
        true; /* and grants of nodes that did not store it are dropped */
    r.enough = has_majority_answered;
    r.allowed = 0;
    for (size_t node = 0; (node = rlock_next(c, v->voters, node)) < c->node_ct;
         node++) {
        if (v->proposals[node] > 0 && v->proposals[node] != v->token)
            r.allowed |= 1U << node;
    }
    rlock_round_run(&r);
    for (size_t node = 0; (node = rlock_next(c, ~agree, node)) < c->node_ct; node++) {
        const char *said = rlock_has(r.answered, node) ? rlock_said(&r, node) : NULL;

        v->is_unheard = v->is_unheard || (rlock_has(r.allowed, node) && said == NULL);
        for (size_t i = 0; i < v->take.s->n; i++) {
            if (said == NULL || said[i] != '1')
                slot_of(v, i)->grants &= (unsigned char)~(1U << node);
        }
    }
    rlock_round_clear(&r);
}

/* ---- outcome ---- */

/* Keys that were not granted are released on all nodes that may have granted them,
 * without waiting. If a node misses the release, the lease ends the grant. */
static void give_back_losers(struct vote *v, unsigned asked)
{
    size_t *index = v->take.s->l->table;
    struct rlock_span s = {.l = v->take.s->l, .index = index};
    struct rlock_round r =
        rlock_round_of(v->round.c, s.l, LUA_RELEASE, 0, rlock_fill_give, &s);

    for (size_t i = 0; i < v->take.s->n; i++) {
        const struct rlock_slot *slot = slot_of(v, i);

        if (slot->code != RLOCK_OK &&
            (slot->grants != 0 || v->valid != asked || v->is_written_back))
            index[s.n++] = rlock_span_key(v->take.s, i);
    }
    if (s.n > 0)
        rlock_round_tell(&r, asked);
}

bool rlock_is_half_done(int code)
{
    return code == RLOCK_E_PROTO || code == RLOCK_E_AUTH || code == RLOCK_E_OOM ||
           code == RLOCK_E_UNCERTAIN;
}

static int conclude(struct vote *v, unsigned asked)
{
    struct rlock_client *c = v->round.c;
    struct rlock_lock *l = v->take.s->l;
    size_t granted = 0;
    int code;

    for (size_t i = 0; i < v->take.s->n; i++)
        granted += has_majority(v, i) ? 1 : 0;
    if (granted < v->take.s->n && v->take.mode == RLOCK_ALL)
        granted = 0;
    for (size_t i = 0; i < v->take.s->n; i++)
        slot_of(v, i)->code = granted > 0 && has_majority(v, i) ? RLOCK_OK : RLOCK_BUSY;
    l->token = granted > 0 ? v->token : 0;
    if (granted == v->take.s->n || (granted == 1 && v->take.mode == RLOCK_ONE))
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

static int vote_span(struct rlock_span *s, enum rlock_mode mode, int64_t limit_ms)
{
    struct rlock_client *c = s->l->client;
    struct vote v = {.take = {.s = s, .mode = mode, .lease_ms = s->l->lease_ms}};
    int64_t wait_ms;
    int code;

    v.round = rlock_round_of(c, s->l, LUA_ACQUIRE, limit_ms, rlock_fill_take, &v.take);
    v.round.enough = is_decided;
    v.round.allowed = grantors(c, &wait_ms);
    v.round.who = v.round.allowed & rlock_up_nodes(c);
    if (rlock_count(v.round.who) < rlock_majority(c) && wait_ms < INT64_MAX)
        return rlock_fail(c, RLOCK_E_NO_QUORUM,
                          "%zu of %zu nodes may grant: one that started less than "
                          "max_lease_ms ago must wait another %lld ms",
                          rlock_count(v.round.who), c->node_ct, (long long)wait_ms);
    v.take.floor = common_floor(c, v.round.who);
    for (size_t i = 0; i < s->n; i++) {
        slot_of(&v, i)->grants = 0;
        slot_of(&v, i)->busy_ms = 0;
    }
    rlock_round_run(&v.round);
    for (size_t i = 0; i < c->node_ct; i++)
        memcpy(s->l->run_ids[i], c->nodes[i].run_id, sizeof s->l->run_ids[i]);
    (void)is_decided(&v.round); /* reads the answers that came last */
    if ((choose_token(&v) || mode == RLOCK_ANY) && v.token > 0 && !is_settled(&v))
        write_back(&v);
    rlock_note_token(c, v.token);
    code = conclude(&v, v.round.who);
    rlock_round_clear(&v.round);
    return code;
}

int rlock_vote(struct rlock_lock *l, enum rlock_mode mode, int64_t limit_ms)
{
    struct rlock_span all = {.l = l, .n = l->n};
    size_t first;
    int code = RLOCK_BUSY;

    if (mode != RLOCK_ONE || l->client->node_ct == 1)
        return vote_span(&all, mode, limit_ms);
    /* Each permit is asked for by itself, beginning at a place drawn at random: asked
     * for any permit, the nodes would grant different ones. */
    first = (size_t)rlock_jitter_ms((int64_t)l->n) - 1;
    for (size_t i = 0; code == RLOCK_BUSY && i < l->n; i++) {
        size_t permit = (first + i) % l->n;
        struct rlock_span one = {.l = l, .index = &permit, .n = 1};

        code = i > 0 ? rlock_gather(l->client, true, limit_ms) : RLOCK_OK;
        if (code == RLOCK_OK)
            code = vote_span(&one, RLOCK_ALL, limit_ms);
    }
    return code;
}

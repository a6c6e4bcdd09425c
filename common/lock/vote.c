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
#define LONE_END (LL_TOKEN_END - (INT64_C(1) << 40))

/* ---- votes ---- */

/* The answers of the nodes about the keys of one span. */
struct vote {
    struct ll_take take;
    struct ll_round round;
    unsigned read;   /* nodes (bits) whose answer was read */
    unsigned valid;  /* of these: valid answers */
    unsigned far;    /* of these: proposals from LONE_END on */
    unsigned voters; /* of the valid ones: those whose votes count */
    int64_t proposals[LL_NODES_MAX];
    int64_t token;
    bool is_unheard; /* a node did not answer the write-back */
    bool is_written_back;
};

static struct ll_slot *slot_of(const struct vote *v, size_t i)
{
    return ll_span_slot(v->take.s, i);
}

/* Nodes (bits) that granted a key. */
static unsigned grants(const struct vote *v, size_t i)
{
    return slot_of(v, i)->grants & v->voters;
}

static bool has_majority(const struct vote *v, size_t i)
{
    return ll_count(grants(v, i)) >= ll_majority(v->round.c);
}

/* Counts the vote of a node. Its answer is parsed like that of a single server, then
 * added to the votes of the others. */
static void read_vote(struct vote *v, size_t node)
{
    struct ll_client *c = v->round.c;
    int code = ll_read_take(c, &v->take, c->nodes[node].replies[0]);

    v->read |= 1U << node;
    if (code < 0)
        return;
    v->valid |= 1U << node;
    for (size_t i = 0; i < v->take.s->n; i++) {
        if (slot_of(v, i)->code == LL_OK)
            slot_of(v, i)->grants |= (unsigned char)(1U << node);
    }
    v->proposals[node] = v->take.token;
    v->far |= v->proposals[node] >= LONE_END ? 1U << node : 0;
    v->voters = ll_count(v->far) >= ll_majority(c) ? v->valid : v->valid & ~v->far;
}

/* True if a majority granted or refused every key: more answers change nothing. */
static bool is_decided(void *round)
{
    struct vote *v = (struct vote *)((char *)round - offsetof(struct vote, round));
    struct ll_client *c = v->round.c;
    size_t refusals_needed = c->node_ct - ll_majority(c) + 1;
    unsigned unread = v->round.who & ~v->read;

    for (size_t i = 0; (i = ll_next(c, unread, i)) < c->node_ct; i++) {
        const struct ll_node *node = &c->nodes[i];

        if (node->code == LL_OK && node->reply_ct == 1 &&
            node->replies[0]->type == REDIS_REPLY_ARRAY &&
            node->replies[0]->elements > 1)
            read_vote(v, i);
    }
    if (ll_count(v->voters) < ll_majority(c))
        return false;
    for (size_t i = 0; i < v->take.s->n; i++) {
        if (!has_majority(v, i) &&
            ll_count(v->voters) - ll_count(grants(v, i)) < refusals_needed)
            return false;
    }
    return true;
}

/* ---- write-back ---- */

static void fill_raise(struct ll_round *r, struct ll_node *node)
{
    const struct vote *v = r->arg;
    const struct ll_lock *l = v->take.s->l;
    char value[LL_NONCE_SIZE + 24];

    (void)snprintf(value, sizeof value, "%s%lld", l->mark,
                   (long long)v->proposals[node - r->c->nodes]);
    ll_eval(r, node, v->take.s->n + 1, 4);
    ll_put_span(&node->out, v->take.s);
    ll_put_word(&node->out, value);
    ll_put_number(&node->out, v->token);
    ll_put_window(r, node);
}

/* The highest proposal for the keys with a majority; true if all keys have one. */
static bool choose_token(struct vote *v)
{
    const struct ll_client *c = v->round.c;
    bool is_whole = true;

    for (size_t i = 0; i < v->take.s->n; i++) {
        unsigned who = grants(v, i);

        if (!has_majority(v, i)) {
            is_whole = false;
            continue;
        }
        for (size_t node = 0; (node = ll_next(c, who, node)) < c->node_ct; node++)
            v->token = ll_most(v->token, v->proposals[node]);
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
            ll_count(grants(v, i) & who) < ll_majority(v->round.c))
            return false;
    }
    return true;
}

static bool has_majority_answered(void *round)
{
    const struct ll_round *r = round;
    const struct vote *v = r->arg;
    unsigned who = agreeing(v);

    for (size_t i = 0; (i = ll_next(r->c, r->who, i)) < r->c->node_ct; i++)
        who |= r->c->nodes[i].code == LL_OK ? 1U << i : 0;
    return ll_count(who) >= ll_majority(r->c);
}

/* A node that stored the token counts as one that proposed it, for the keys of its
 * answer. */
static void write_back(struct vote *v)
{
    struct ll_client *c = v->round.c;
    struct ll_round r = ll_round_of(c, v->take.s->l, LUA_RAISE, fill_raise, v);
    unsigned agree = agreeing(v);

    v->is_written_back =
        true; /* and grants of nodes that did not store it are dropped */
    r.enough = has_majority_answered;
    r.allowed = 0;
    for (size_t node = 0; (node = ll_next(c, v->voters, node)) < c->node_ct; node++) {
        if (v->proposals[node] > 0 && v->proposals[node] != v->token)
            r.allowed |= 1U << node;
    }
    ll_round_run(&r);
    for (size_t node = 0; (node = ll_next(c, ~agree, node)) < c->node_ct; node++) {
        const char *said = ll_has(r.answered, node) ? ll_said(&r, node) : NULL;

        v->is_unheard = v->is_unheard || (ll_has(r.allowed, node) && said == NULL);
        for (size_t i = 0; i < v->take.s->n; i++) {
            if (said == NULL || said[i] != '1')
                slot_of(v, i)->grants &= (unsigned char)~(1U << node);
        }
    }
}

/* ---- outcome ---- */

/* Keys that were not granted are released on all nodes that may have granted them,
 * without waiting. If a node misses the release, the lease ends the grant. */
static void give_back_losers(struct vote *v, unsigned asked)
{
    size_t *index = v->take.s->l->table;
    struct ll_span s = {.l = v->take.s->l, .index = index};
    struct ll_round r = ll_round_of(v->round.c, s.l, LUA_RELEASE, ll_fill_give, &s);

    for (size_t i = 0; i < v->take.s->n; i++) {
        const struct ll_slot *slot = slot_of(v, i);

        if (slot->code != LL_OK &&
            (slot->grants != 0 || v->valid != asked || v->is_written_back))
            index[s.n++] = ll_span_key(v->take.s, i);
    }
    if (s.n > 0)
        ll_round_tell(&r, asked);
}

bool ll_is_half_done(int code)
{
    return code == LL_E_PROTO || code == LL_E_AUTH || code == LL_E_OOM ||
           code == LL_E_UNCERTAIN;
}

static int conclude(struct vote *v, unsigned asked)
{
    struct ll_client *c = v->round.c;
    struct ll_lock *l = v->take.s->l;
    size_t granted = 0;
    int code;

    for (size_t i = 0; i < v->take.s->n; i++)
        granted += has_majority(v, i) ? 1 : 0;
    if (granted < v->take.s->n && v->take.mode == LL_ALL)
        granted = 0;
    for (size_t i = 0; i < v->take.s->n; i++)
        slot_of(v, i)->code = granted > 0 && has_majority(v, i) ? LL_OK : LL_BUSY;
    l->token = granted > 0 ? v->token : 0;
    if (granted == v->take.s->n || (granted == 1 && v->take.mode == LL_ONE))
        return LL_OK;
    if (granted > 0)
        code = LL_PARTIAL;
    else if (v->is_unheard)
        code = ll_fail(c, LL_E_NO_QUORUM, "too few nodes took the token");
    else
        code = ll_count(v->voters) >= ll_majority(c) ? LL_BUSY : ll_too_few(&v->round);

    if (code >= 0)
        give_back_losers(v, asked);
    else if (v->round.unanswered != 0 || v->valid != 0 || ll_is_half_done(code))
        l->uncertain = true;
    return code;
}

/* ---- take ---- */

/* Nodes that may grant: none that started lately, since it may have lost locks. */
static unsigned grantors(const struct ll_client *c, int64_t *wait_ms)
{
    unsigned who = LL_ALL_NODES;

    *wait_ms = INT64_MAX;
    for (size_t i = 0; i < c->node_ct; i++) {
        int64_t left_ms = c->nodes[i].grants_at_ms - ll_now_ms();

        if (c->nodes[i].state != LL_UP || left_ms <= 0)
            continue;
        who &= ~(1U << i);
        *wait_ms = ll_least(*wait_ms, left_ms);
    }
    return who;
}

/* Ahead of the clocks of all nodes, but of one at which a proposal would be alone. */
static int64_t common_floor(const struct ll_client *c, unsigned who)
{
    int64_t floor = c->floor;

    if (c->node_ct == 1)
        return floor;
    for (size_t i = 0; (i = ll_next(c, who, i)) < c->node_ct; i++) {
        int64_t us = (ll_now_ms() + c->nodes[i].server_ahead_ms + AHEAD_MS) * 1000;

        if (us < LONE_END)
            floor = ll_most(floor, us);
    }
    return floor;
}

static int vote_span(struct ll_span *s, enum ll_mode mode)
{
    struct ll_client *c = s->l->client;
    struct vote v = {.take = {.s = s, .mode = mode, .lease_ms = s->l->lease_ms}};
    int64_t wait_ms;

    v.round = ll_round_of(c, s->l, LUA_ACQUIRE, ll_fill_take, &v.take);
    v.round.enough = is_decided;
    v.round.allowed = grantors(c, &wait_ms);
    v.round.who = v.round.allowed & ll_up_nodes(c);
    if (ll_count(v.round.who) < ll_majority(c) && wait_ms < INT64_MAX)
        return ll_fail(c, LL_E_NO_QUORUM,
                       "%zu of %zu nodes may grant: one that started less than "
                       "max_lease_ms ago must wait another %lld ms",
                       ll_count(v.round.who), c->node_ct, (long long)wait_ms);
    v.take.floor = common_floor(c, v.round.who);
    for (size_t i = 0; i < s->n; i++) {
        slot_of(&v, i)->grants = 0;
        slot_of(&v, i)->busy_ms = 0;
    }
    ll_round_run(&v.round);
    for (size_t i = 0; i < c->node_ct; i++)
        memcpy(s->l->run_ids[i], c->nodes[i].run_id, sizeof s->l->run_ids[i]);
    (void)is_decided(&v.round); /* reads the answers that came last */
    if ((choose_token(&v) || mode == LL_ANY) && v.token > 0 && !is_settled(&v))
        write_back(&v);
    ll_note_token(c, v.token);
    return conclude(&v, v.round.who);
}

int ll_vote(struct ll_lock *l, enum ll_mode mode)
{
    struct ll_span all = {.l = l, .n = l->n};
    size_t first;
    int code = LL_BUSY;

    if (mode != LL_ONE || l->client->node_ct == 1)
        return vote_span(&all, mode);
    /* Each permit is asked for by itself, beginning at a place drawn at random: asked
     * for any permit, the nodes would grant different ones. */
    first = (size_t)ll_jitter_ms((int64_t)l->n) - 1;
    for (size_t i = 0; code == LL_BUSY && i < l->n; i++) {
        size_t permit = (first + i) % l->n;
        struct ll_span one = {.l = l, .index = &permit, .n = 1};

        code = i > 0 ? ll_gather(l->client, true) : LL_OK;
        if (code == LL_OK)
            code = vote_span(&one, LL_ALL);
    }
    return code;
}

/* write_back: the token of an acquire over a quorum, and its second round: the token is
 * stored on the nodes that granted it and proposed a lower one. */
#include "common/lock/operation.h"

unsigned rlock_granting(const struct rlock_vote *v, size_t i)
{
    return rlock_vote_slot(v, i)->grants & v->voters;
}

bool rlock_has_majority(const struct rlock_vote *v, size_t i)
{
    return rlock_count(rlock_granting(v, i)) >= rlock_majority(v->round.c);
}

bool rlock_choose_token(struct rlock_vote *v)
{
    const struct rlock_client *c = v->round.c;
    bool is_whole = true;

    for (size_t i = 0; i < v->take.s->n; i++) {
        unsigned who = rlock_granting(v, i);

        if (!rlock_has_majority(v, i)) {
            is_whole = false;
            continue;
        }
        for (size_t node = 0; (node = rlock_next(c, who, node)) < c->node_ct; node++)
            v->token = rlock_most(v->token, v->proposals[node]);
    }
    return is_whole;
}

bool rlock_is_settled(const struct rlock_vote *v)
{
    unsigned who = rlock_agreeing(v);

    for (size_t i = 0; i < v->take.s->n; i++) {
        if (rlock_has_majority(v, i) &&
            rlock_count(rlock_granting(v, i) & who) < rlock_majority(v->round.c))
            return false;
    }
    return true;
}

unsigned rlock_agreeing(const struct rlock_vote *v)
{
    unsigned who = 0;

    for (size_t node = 0; node < v->round.c->node_ct; node++)
        who |= v->proposals[node] == v->token ? 1U << node : 0;
    return who;
}

static void fill_raise(struct rlock_round *r, struct rlock_node *node)
{
    const struct rlock_vote *v = r->arg;

    rlock_eval(r, node, v->take.s->n + 1, 4);
    r->keys = v->take.s->n;
    rlock_put_word(&node->link.out, r->c->last_key);
    rlock_put_span(&node->link.out, v->take.s);
    rlock_put_value(&node->link.out, v->l, v->proposals[node - r->c->nodes]);
    rlock_put_number(&node->link.out, v->token);
    rlock_put_window(r, node);
}

static bool has_majority_answered(void *round)
{
    const struct rlock_round *r = round;
    const struct rlock_vote *v = r->arg;
    unsigned who = rlock_agreeing(v);

    for (size_t i = 0; (i = rlock_next(r->c, r->who, i)) < r->c->node_ct; i++)
        who |= r->calls[i].code == RLOCK_OK ? 1U << i : 0;
    return rlock_count(who) >= rlock_majority(r->c);
}

void rlock_begin_write_back(struct rlock_vote *v)
{
    struct rlock_client *c = v->round.c;

    v->is_written_back =
        true; /* and grants of nodes that did not store it are dropped */
    v->back = rlock_round_of(c, v->l, LUA_RAISE, v->limit_ms, fill_raise, v);
    v->back.enough = has_majority_answered;
    v->back.allowed = 0;
    for (size_t node = 0; (node = rlock_next(c, v->voters, node)) < c->node_ct;
         node++) {
        if (v->proposals[node] > 0 && v->proposals[node] != v->token)
            v->back.allowed |= 1U << node;
    }
}

/* A node that stored the token counts as one that proposed it, for the keys of its
 * answer. */
void rlock_read_write_back(struct rlock_vote *v)
{
    const struct rlock_round *r = &v->back;
    unsigned agree = rlock_agreeing(v);

    for (size_t node = 0; (node = rlock_next(r->c, ~agree, node)) < r->c->node_ct;
         node++) {
        const char *said = rlock_has(r->answered, node) ? rlock_said(r, node) : NULL;

        v->is_unheard = v->is_unheard || (rlock_has(r->allowed, node) && said == NULL);
        for (size_t i = 0; i < v->take.s->n; i++) {
            if (said == NULL || said[i] != '1')
                rlock_vote_slot(v, i)->grants &= (unsigned char)~(1U << node);
        }
    }
    rlock_round_clear(&v->back);
}

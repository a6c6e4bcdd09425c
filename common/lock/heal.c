/* heal: puts keys back on the nodes of a quorum that have lost them. */
#include "common/lock/internal.h"

enum { UNHEARD_KEYS = 16 };

/* The keys of a part that begin at `at` in the answers of a round. */
struct loss {
    const struct rlock_round *kept;
    const struct rlock_part *part;
    size_t at;
};

/* The next key that a node has lost, from i on; l->n when there is none. */
static size_t next_lost(const struct loss *loss, const char *said, size_t i)
{
    const struct rlock *l = loss->part->l;
    size_t at = loss->at;

    for (size_t k = 0; (k = rlock_next_held(l, k)) < l->n; k++) {
        if ((said == NULL || said[at] == '0') && k >= i)
            return k;
        at++;
    }
    return l->n;
}

static void fill_heal(struct rlock_round *r, struct rlock_node *node)
{
    const struct loss *loss = r->arg;
    const struct rlock *l = loss->part->l;
    const char *said = rlock_said(loss->kept, (size_t)(node - r->c->nodes));
    struct rlock_text *t = &node->link.out;
    size_t n = 0;

    for (size_t k = 0; (k = next_lost(loss, said, k)) < l->n; k++)
        n++;
    rlock_eval(r, node, n + 1, 5);
    r->keys = n;
    rlock_put_word(t, r->c->last_key);
    for (size_t k = 0; (k = next_lost(loss, said, k)) < l->n; k++)
        rlock_put_name(t, l, k);
    rlock_put_value(t, l, l->token);
    rlock_put_number(t, loss->part->ttl_ms);
    rlock_put_number(t, l->token);
    rlock_put_window(r, node);
}

/* A majority has confirmed the part's keys: nodes that lost them get them back, without
 * waiting; also one that has not answered yet, of a few keys. */
void rlock_heal(const struct rlock_round *kept,
                const struct rlock_part *part,
                size_t at)
{
    struct loss loss = {.kept = kept, .part = part, .at = at};
    struct rlock_round r =
        rlock_round_of(kept->c, part->l, LUA_HEAL, kept->limit_ms, fill_heal, &loss);
    unsigned who = 0;

    for (size_t i = 0; i < kept->c->node_ct; i++) {
        const char *said = rlock_said(kept, i);

        if (said == NULL && kept->keys > UNHEARD_KEYS)
            continue; /* another time */
        if (rlock_has(kept->who, i) && next_lost(&loss, said, 0) < part->l->n)
            who |= 1U << i;
    }
    rlock_round_tell(&r, who);
}

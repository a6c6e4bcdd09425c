/* answer: what the nodes said to the script of a round. */
#include <string.h>

#include "common/lock/internal.h"

bool rlock_is_apart(const struct rlock_round *r)
{
    const redisReply *reply = rlock_answer(r, 0);

    return r->c->node_ct == 1 && r->calls[0].code == RLOCK_OK && reply != NULL &&
           rlock_is_error(reply, "TRYAGAIN");
}

/* The answer to ASKING, which comes before, is not used. */
const redisReply *rlock_answer(const struct rlock_round *r, size_t i)
{
    const struct rlock_exchange *x = &r->calls[i].x;

    return x->reply_ct > 0 && x->reply_ct == x->wanted ? x->replies[x->wanted - 1]
                                                       : NULL;
}

const char *rlock_said(const struct rlock_round *r, size_t i)
{
    const redisReply *reply = rlock_answer(r, i);

    if (r->calls[i].code != RLOCK_OK || reply == NULL)
        return NULL;
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0)
        reply = reply->element[0];
    return reply->type == REDIS_REPLY_STRING && reply->len == r->keys ? reply->str
                                                                      : NULL;
}

bool rlock_is_all_ours(void *round)
{
    const struct rlock_round *r = round;
    size_t n = 0;

    for (size_t i = 0; i < r->c->node_ct; i++) {
        const char *said = rlock_said(r, i);

        n += said != NULL && strspn(said, "1") == r->keys ? 1 : 0;
    }
    return n >= rlock_majority(r->c);
}

int rlock_too_few(const struct rlock_round *r)
{
    struct rlock_client *c = r->c;

    for (size_t i = 0; (i = rlock_next(c, r->answered, i)) < c->node_ct; i++) {
        const redisReply *reply = rlock_answer(r, i);

        if (reply != NULL && reply->type == REDIS_REPLY_ERROR)
            return rlock_reply_code(c, &c->nodes[i], reply);
    }
    if (c->node_ct > 1)
        return rlock_fail(c, RLOCK_E_NO_QUORUM,
                          "fewer than a majority of %zu nodes answered", c->node_ct);
    return r->calls[0].code != RLOCK_OK
               ? r->calls[0].code
               : rlock_fail(c, RLOCK_E_PROTO, "a script answered nonsense");
}

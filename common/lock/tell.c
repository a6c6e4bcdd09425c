/* tell: one command on every node, as it is. */
#include "common/lock/tell.h"

#include "common/lock/connection.h"

int rlock_tell_all(struct rlock_client *c, const char *const *words)
{
    int code = rlock_enter(c);
    unsigned up;

    if (code == RLOCK_OK)
        code = rlock_gather(c, false);
    if (code != RLOCK_OK)
        return code;
    up = rlock_ready_nodes(c);
    for (size_t i = 0; (i = rlock_next(c, up, i)) < c->node_ct; i++) {
        rlock_talk_begin(&c->nodes[i], 1);
        rlock_put_words(&c->nodes[i].out, words);
    }
    rlock_talk(c, up, c->limit_ms, NULL, NULL);
    for (size_t i = 0; (i = rlock_next(c, up, i)) < c->node_ct; i++) {
        struct rlock_node *node = &c->nodes[i];

        if (node->code != RLOCK_OK)
            code = node->code;
        else if (node->replies[0]->type == REDIS_REPLY_ERROR)
            code = rlock_reply_code(c, node, node->replies[0]);
    }
    return code;
}

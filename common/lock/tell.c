/* tell: one command on every node, as it is. */
#include "common/lock/tell.h"

#include "common/lock/connection.h"

int ll_tell_all(struct ll_client *c, const char *const *words)
{
    int code = ll_enter(c);
    unsigned up;

    if (code == LL_OK)
        code = ll_gather(c, false);
    if (code != LL_OK)
        return code;
    up = ll_ready_nodes(c);
    for (size_t i = 0; (i = ll_next(c, up, i)) < c->node_ct; i++) {
        ll_talk_begin(&c->nodes[i], 1);
        ll_put_words(&c->nodes[i].out, words);
    }
    ll_talk(c, up, c->limit_ms, NULL, NULL);
    for (size_t i = 0; (i = ll_next(c, up, i)) < c->node_ct; i++) {
        struct ll_node *node = &c->nodes[i];

        if (node->code != LL_OK)
            code = node->code;
        else if (node->replies[0]->type == REDIS_REPLY_ERROR)
            code = ll_reply_code(c, node, node->replies[0]);
    }
    return code;
}

/* tell: one command on every node, as it is. */
#include "common/lock/tell.h"

#include "common/lock/connection.h"

int rlock_tell_all(struct rlock_client *c, const char *const *words)
{
    int64_t limit_ms = rlock_call_end(c);
    int code = rlock_check_owner(c);

    if (code == RLOCK_OK)
        code = rlock_gather(c, false, limit_ms);
    if (code != RLOCK_OK)
        return code;
    for (size_t i = 0; i < c->node_ct; i++) {
        struct rlock_node *node = &c->nodes[i];
        struct rlock_ask ask = {.c = c, .node = i};
        const redisReply *reply;

        if (!rlock_node_is_ready(node))
            continue;
        rlock_link_begin(&node->link, &ask.x, 1);
        rlock_put_words(&node->link.out, words);
        reply = rlock_ask(&ask, limit_ms);
        if (reply == NULL)
            code = ask.x.code;
        else if (reply->type == REDIS_REPLY_ERROR)
            code = rlock_reply_code(c, node, reply);
        rlock_exchange_clear(&ask.x);
    }
    return code;
}

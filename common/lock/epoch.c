/* epoch: the record that tokens are minted from, and its replacement after a loss. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#include "common/lock/internal.h"

static int ask(struct ll_client *c, int64_t epoch, int64_t *current)
{
    char record[LL_PREFIX_MAX + 8], number[24];
    const char *argv[6] = {NULL, NULL, NULL, record, number, c->nodes[0].ident};
    size_t lens[6];
    redisReply *reply;
    int code = ll_connect(c);

    *current = 0;
    if (code != LL_OK)
        return code;
    if (c->node_ct > 1)
        return ll_fail(c, LL_E_INVAL, "a quorum has no epoch; see ll_seed");
    if (c->no_scripts)
        return ll_plain_epoch(c, epoch, current);
    lens[3] = (size_t)snprintf(record, sizeof record, "%s!fence", c->prefix);
    lens[4] = (size_t)snprintf(number, sizeof number, "%lld", (long long)epoch);
    lens[5] = strlen(c->nodes[0].ident);
    code = ll_script(c, LUA_EPOCH, 1, 6, argv, lens, &reply);
    if (code != LL_OK)
        return code;
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2) {
        *current = reply->element[1]->integer;
        if (reply->element[0]->integer != 1)
            code = ll_fail(c, LL_E_EPOCH, "%s", ll_strerror(LL_E_EPOCH));
    } else {
        code = ll_reply_code(c, &c->nodes[0], reply);
    }
    freeReplyObject(reply);
    return code;
}

int ll_check_epoch(struct ll_client *c, int64_t *current)
{
    return ask(c, 0, current);
}

int ll_install_epoch(struct ll_client *c, int64_t epoch, int64_t *current)
{
    if (epoch < 1 || epoch > LL_EPOCH_MAX)
        return ll_fail(c, LL_E_INVAL, "an epoch is 1 to %d, not %lld", LL_EPOCH_MAX,
                       (long long)epoch);
    return ask(c, epoch, current);
}

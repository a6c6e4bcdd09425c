/* sentinel: asks the Sentinels where the primary is, one after the other. */
#define _DEFAULT_SOURCE /* strdup */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/internal.h"

/* Longest that one Sentinel may keep us from the next. */
enum { ASK_MS = 500 };

static int keep_address(struct ll_client *c, const redisReply *reply)
{
    struct ll_address *a = &c->nodes[0].address;
    long port;
    char *host;

    if (reply->type == REDIS_REPLY_NIL)
        return ll_fail(c, LL_E_UNAVAILABLE, "it knows no primary called %s",
                       c->primary_name);
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[0]->str == NULL || reply->element[1]->str == NULL)
        return ll_fail(c, LL_E_PROTO, "it named no address");
    port = strtol(reply->element[1]->str, NULL, 10);
    if (port < 1 || port > 65535)
        return ll_fail(c, LL_E_PROTO, "it named the port %s", reply->element[1]->str);
    host = strdup(reply->element[0]->str);
    if (host == NULL)
        return ll_fail(c, LL_E_NOMEM, "out of memory");
    free(a->host);
    *a = (struct ll_address){.host = host, .port = (int)port};
    return LL_OK;
}

static int ask(struct ll_client *c, const struct ll_address *a, int64_t deadline_ms)
{
    struct ll_node sentinel = {.address = *a}; /* borrows the host name */
    redisReply *reply;
    int code = ll_node_open(c, &sentinel, deadline_ms);

    if (code == LL_OK)
        code = ll_words(
            c, &sentinel, deadline_ms, &reply, 3,
            (const char *[]){"SENTINEL", "get-master-addr-by-name", c->primary_name});
    if (code == LL_OK) {
        code = keep_address(c, reply);
        freeReplyObject(reply);
    }
    ll_node_disconnect(&sentinel);
    return code == LL_E_UNCERTAIN ? LL_E_UNAVAILABLE : code; /* a question only */
}

/* The one that answered is asked first next time. */
static void move_first(struct ll_client *c, size_t i)
{
    struct ll_address first = c->sentinels[i];

    memmove(c->sentinels + 1, c->sentinels, i * sizeof first);
    c->sentinels[0] = first;
}

void ll_sentinel_distrust(struct ll_client *c)
{
    struct ll_address first = c->sentinels[0];

    if (c->sentinel_ct < 2)
        return;
    memmove(c->sentinels, c->sentinels + 1, (c->sentinel_ct - 1) * sizeof first);
    c->sentinels[c->sentinel_ct - 1] = first;
}

int ll_sentinel_find(struct ll_client *c, int64_t deadline_ms)
{
    char words[LL_ERROR_MAX];
    int worst = LL_E_UNAVAILABLE;

    for (size_t i = 0; i < c->sentinel_ct; i++) {
        int64_t now_ms = ll_now_ms();
        /* an equal share of what is left, with one share for the primary */
        int64_t share = (deadline_ms - now_ms) / (int64_t)(c->sentinel_ct - i + 1);
        int code = ask(c, &c->sentinels[i], now_ms + (share < ASK_MS ? share : ASK_MS));

        if (code == LL_OK) {
            move_first(c, i);
            return LL_OK;
        }
        if (code != LL_E_UNAVAILABLE)
            worst = code;
    }
    (void)snprintf(words, sizeof words, "%s", c->error);
    return ll_fail(c, worst, "no Sentinel told where %s is; the last one: %.150s",
                   c->primary_name, words);
}

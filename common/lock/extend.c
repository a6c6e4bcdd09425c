/* extend: a longer lease for a tenure that is still whole; verify: is it? */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#include "common/lock/internal.h"

/* One script over the keys of a chunk; *least is the shortest time left of ours. */
static int
ask(struct ll_lock *l, const size_t *index, size_t n, uint32_t ttl_ms, int64_t *least)
{
    char ttl[16];
    const char **argv = l->argv;
    redisReply *reply;
    int argc = 3;
    int code = ll_connect(l->client);

    if (code != LL_OK)
        return code;
    for (size_t i = 0; i < n; i++, argc++)
        argv[argc] = ll_name(l, index[i], &l->lens[argc]);
    argv[argc] = ttl;
    l->lens[argc++] = (size_t)snprintf(ttl, sizeof ttl, "%u", ttl_ms);
    for (size_t i = 0; i < n; i++, argc++) {
        argv[argc] = l->mark;
        l->lens[argc] = strlen(l->mark);
    }
    code = ll_script(l->client, LUA_EXTEND, (int)n, argc, argv, l->lens, &reply);
    if (code != LL_OK)
        return code;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[0]->str == NULL || reply->element[0]->len != n)
        code = ll_fail(l->client, LL_E_PROTO, "the extend script answered nonsense");
    else if (strspn(reply->element[0]->str, "1") != n)
        code = LL_LOST;
    else if (*least < 0 || reply->element[1]->integer < *least)
        *least = reply->element[1]->integer;
    freeReplyObject(reply);
    return code;
}

/* Half of LL_KEYS_MAX, since every key brings a mark with it. */
enum { CHUNK = LL_KEYS_MAX / 2 };

static int extend_keys(struct ll_lock *l, uint32_t ttl_ms, int64_t *least)
{
    size_t index[CHUNK];
    size_t n = 0;
    int code = LL_OK;

    for (size_t i = 0; i < l->n && code == LL_OK; i++) {
        if (l->slots[i].code == LL_OK)
            index[n++] = i;
        if (n == CHUNK || (i + 1 == l->n && n > 0)) {
            code = ask(l, index, n, ttl_ms, least);
            if (code == LL_E_UNCERTAIN) /* the same again does no harm */
                code = ask(l, index, n, ttl_ms, least);
            n = 0;
        }
    }
    return code;
}

static int ready(struct ll_lock *l)
{
    int code = ll_check_owner(l->client);

    if (code != LL_OK)
        return code;
    if (l->granted == 0 || l->released)
        return ll_fail(l->client, LL_E_INVAL, "the lock is not held");
    return l->lost ? LL_LOST : LL_OK;
}

static int remember(struct ll_lock *l, int code)
{
    if (code == LL_LOST) {
        l->lost = true;
        (void)ll_fail(l->client, 0, "%s", ll_strerror(LL_LOST));
    }
    return code;
}

int ll_extend(struct ll_lock *l, uint32_t lease_ms)
{
    uint32_t ttl_ms = lease_ms + l->tolerance_ms;
    int64_t least = -1;
    int64_t deadline_ms;
    int code = ready(l);

    if (code != LL_OK)
        return code;
    if (lease_ms == 0 || ttl_ms < lease_ms)
        return ll_fail(l->client, LL_E_INVAL, "a lease of 0 ms would be over at once");
    deadline_ms = ll_deadline(lease_ms);
    if (l->client->node_ct > 1)
        code = ll_quorum_extend(l, ttl_ms);
    else if (l->client->no_scripts)
        code = ll_plain_extend(l, ttl_ms);
    else
        code = extend_keys(l, ttl_ms, &least);
    if (code == LL_OK && deadline_ms > l->deadline_ms)
        l->deadline_ms = deadline_ms;
    return remember(l, code);
}

int ll_verify(struct ll_lock *l, int64_t *left_ms)
{
    int code = ready(l);

    *left_ms = -1;
    if (code != LL_OK)
        return code;
    if (l->client->node_ct > 1)
        code = ll_quorum_extend(l, 0);
    else if (l->client->no_scripts)
        code = ll_plain_extend(l, 0);
    else
        code = extend_keys(l, 0, left_ms);
    if (code == LL_OK && *left_ms < 0)
        *left_ms = l->deadline_ms - ll_now_ms();
    return remember(l, code);
}

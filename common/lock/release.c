/* release: compare-and-delete of a whole tenure in one script call. */
#include <hiredis/hiredis.h>
#include <string.h>

#include "common/lock/internal.h"

/* Puts the keys that this tenure was granted at argv[3...]; returns how many. */
static int granted_keys(struct ll_lock *l)
{
    int keys = 0;

    for (size_t i = 0; i < l->n; i++) {
        if (l->slots[i].code == LL_BUSY)
            continue;
        l->lens[3 + keys] = l->offsets[i + 1] - l->offsets[i];
        l->argv[3 + keys] = l->names + l->offsets[i];
        keys++;
    }
    return keys;
}

/* An answer character to the code of its key. A key found gone although we may have
 * deleted it a moment ago, in a try whose answer was lost, was ours until then. */
static int code_of(char answer, bool asked_before)
{
    if (answer == '1')
        return LL_OK;
    if (answer == '0')
        return asked_before ? LL_OK : LL_GONE;
    return answer == '-' ? LL_NOT_OWNER : LL_E_PROTO;
}

static int
read_answer(struct ll_lock *l, const redisReply *reply, int keys, bool asked_before)
{
    int worst = LL_OK;
    int k = 0;

    if (reply->str == NULL || reply->len != (size_t)keys)
        return ll_fail(l->client, LL_E_PROTO, "the release script answered nonsense");
    for (size_t i = 0; i < l->n; i++) {
        if (l->slots[i].code == LL_BUSY)
            continue;
        l->slots[i].code = code_of(reply->str[k++], asked_before);
        if (l->slots[i].code > worst)
            worst = l->slots[i].code;
    }
    return worst;
}

static int ask(struct ll_lock *l, bool asked_before)
{
    redisReply *reply;
    int keys;
    int code = ll_connect(l->client);

    if (code != LL_OK)
        return code;
    keys = granted_keys(l);
    l->argv[3 + keys] = l->mark;
    l->lens[3 + keys] = strlen(l->mark);
    code = ll_script(l->client, LUA_RELEASE, keys, keys + 4, l->argv, l->lens, &reply);
    if (code != LL_OK)
        return code;
    code = read_answer(l, reply, keys, asked_before);
    freeReplyObject(reply);
    return code;
}

int ll_release(struct ll_lock *l)
{
    bool was_valid = ll_valid(l, 0);
    int code;

    if (l->released)
        return l->release_code;
    if (l->granted == 0 && !l->uncertain)
        return LL_GONE;
    code = ask(l, false);
    if (code == LL_E_UNCERTAIN)
        code = ask(l, was_valid);
    if (code >= 0) {
        l->released = true;
        l->release_code = code;
    }
    return code;
}

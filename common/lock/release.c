/* release: compare-and-delete of a whole tenure, or of some of its keys. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/internal.h"
#include "common/lock/mutant.h"

/* Takes the answer character of a key. One found gone although we may have deleted it
 * before, in a try whose answer was lost, was ours until then. */
static void read_answer(struct ll_slot *slot, char answer)
{
    if (answer == '1')
        slot->given_back = true;
    if (answer == '1' || (answer == '0' && slot->given_back))
        slot->code = LL_OK;
    else if (answer == '0')
        slot->code = LL_GONE;
    else
        slot->code = answer == '-' ? LL_NOT_OWNER : LL_E_PROTO;
}

static int ask(struct ll_lock *l, const size_t *index, size_t n)
{
    redisReply *reply;
    int argc = 3;
    int code = ll_connect(l->client);

    if (code != LL_OK)
        return code;
    for (size_t i = 0; i < n; i++, argc++)
        l->argv[argc] = ll_name(l, index[i], &l->lens[argc]);
    l->argv[argc] = l->mark;
    l->lens[argc++] = MUTANT("release-without-nonce") ? 0 : strlen(l->mark);
    l->argv[argc] = l->client->prefix;
    l->lens[argc++] = l->client->prefix_len;
    code = ll_script(l->client, LUA_RELEASE, (int)n, argc, l->argv, l->lens, &reply);
    if (code != LL_OK)
        return code;
    if (reply->str == NULL || reply->len != n)
        code = ll_fail(l->client, LL_E_PROTO, "the release script answered nonsense");
    for (size_t i = 0; code == LL_OK && i < n; i++)
        read_answer(&l->slots[index[i]], reply->str[i]);
    freeReplyObject(reply);
    return code;
}

static int
release_chunk(struct ll_lock *l, const size_t *index, size_t n, bool was_valid)
{
    int code;

    if (l->client->node_ct > 1)
        return ll_quorum_release(l, index, n);
    if (l->client->no_scripts)
        return ll_plain_release(l, index, n);
    code = ask(l, index, n);
    if (code != LL_E_UNCERTAIN)
        return code;
    for (size_t i = 0; was_valid && i < n; i++)
        l->slots[index[i]].given_back = true;
    code = ask(l, index, n);
    return code == LL_E_UNAVAILABLE ? LL_E_UNCERTAIN : code;
}

/* LL_OK when every chunk was answered; the keys' own codes are in their slots. */
static int release_keys(struct ll_lock *l, const size_t *index, size_t n)
{
    bool was_valid = ll_valid(l, 0);
    int code = LL_OK;

    for (size_t at = 0; at < n && code >= 0; at += LL_KEYS_MAX)
        code = release_chunk(l, index + at, n - at < LL_KEYS_MAX ? n - at : LL_KEYS_MAX,
                             was_valid);
    return code < 0 ? code : LL_OK;
}

static int worst_of(const struct ll_lock *l, const size_t *index, size_t n)
{
    int worst = LL_OK;

    for (size_t i = 0; i < n; i++) {
        int code = l->slots[index[i]].code;

        worst = code > worst ? code : worst;
    }
    return worst;
}

static size_t *held_keys(const struct ll_lock *l, size_t *n)
{
    size_t *index = calloc(l->n + 1, sizeof *index);

    *n = 0;
    for (size_t i = 0; index != NULL && i < l->n; i++) {
        if (l->slots[i].code != LL_BUSY)
            index[(*n)++] = i;
    }
    return index;
}

int ll_release(struct ll_lock *l)
{
    size_t *index;
    size_t n;
    int code = ll_check_owner(l->client);

    if (code != LL_OK)
        return code;
    if (l->released)
        return l->release_code;
    if (l->holds > 1) {
        l->holds--;
        return LL_OK;
    }
    if (l->granted == 0 && !l->uncertain)
        return LL_GONE;
    if (!MUTANT("renew-after-release"))
        ll_renew_forget(l);
    index = held_keys(l, &n);
    if (index == NULL)
        return ll_fail(l->client, LL_E_NOMEM, "out of memory");
    code = release_keys(l, index, n);
    if (code == LL_OK) {
        code = worst_of(l, index, n);
        l->released = true;
        l->holds = 0;
        l->release_code = code;
    }
    free(index);
    return code;
}

int ll_release_some(struct ll_lock *l, const size_t *index, size_t n)
{
    int code = ll_check_owner(l->client);

    if (code != LL_OK)
        return code;
    for (size_t i = 0; i < n; i++) {
        if (index[i] >= l->n || l->slots[index[i]].code != LL_OK || l->released)
            return ll_fail(l->client, LL_E_INVAL, "key %zu is not held", index[i]);
    }
    if (l->renewer != NULL)
        return ll_fail(l->client, LL_E_INVAL,
                       "stop the renewal before a part is released");
    code = release_keys(l, index, n);
    if (code != LL_OK)
        return code;
    code = worst_of(l, index, n);
    for (size_t i = 0; i < n; i++) { /* what is left behaves as if never granted */
        l->slots[index[i]].code = LL_BUSY;
        l->granted--;
    }
    if (l->granted == 0) {
        l->released = true;
        l->holds = 0;
        l->release_code = code;
    }
    return code;
}

/* ---- of the dead ---- */

static bool is_nonce(const char *text)
{
    return strspn(text, "0123456789abcdef") == LL_NONCE_HEX &&
           text[LL_NONCE_HEX] == '\0';
}

/* As if the lock were ours, of which no node is known to hold nothing. */
static int release_as(struct ll_lock *l, const char *nonce, size_t *freed)
{
    size_t n;
    size_t *index;
    int code;

    (void)snprintf(l->mark, sizeof l->mark, "%s|", nonce);
    l->asked = (1U << l->client->node_ct) - 1;
    index = held_keys(l, &n);
    if (index == NULL)
        return ll_fail(l->client, LL_E_NOMEM, "out of memory");
    code = release_keys(l, index, n);
    for (size_t i = 0; code == LL_OK && i < n; i++)
        *freed += l->slots[i].code == LL_OK ? 1 : 0;
    free(index);
    return code;
}

int ll_release_dead(struct ll_client *c,
                    const char *nonce,
                    const struct ll_key *keys,
                    size_t n,
                    size_t *freed)
{
    struct ll_lock *l;
    int code = ll_check_owner(c);

    *freed = 0;
    if (code != LL_OK)
        return code;
    if (!is_nonce(nonce))
        return ll_fail(c, LL_E_INVAL, "a nonce is %d hexadecimal digits", LL_NONCE_HEX);
    l = ll_new(c);
    if (l == NULL)
        return ll_fail(c, LL_E_NOMEM, "out of memory");
    code = ll_store_names(l, keys, n);
    if (code == LL_OK)
        code = release_as(l, nonce, freed);
    ll_free(l);
    return code;
}

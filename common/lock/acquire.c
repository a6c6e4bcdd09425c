/* acquire: one tenure over one or many keys, safe to ask for again with the same nonce.
 */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/lock/internal.h"

/* Not a code that callers see: the server refused a command that ran after its time. */
enum { LATE = 100 };

static int new_nonce(struct ll_lock *l)
{
    unsigned char raw[LL_NONCE_HEX / 2];
    size_t have = 0;

    while (have < sizeof raw) { /* unbuffered, so that a fork never repeats one */
        ssize_t n = getrandom(raw + have, sizeof raw - have, 0);

        if (n < 0 && errno != EINTR)
            return ll_fail(l->client, LL_E_UNAVAILABLE, "getrandom: %s",
                           strerror(errno));
        have += n > 0 ? (size_t)n : 0;
    }
    for (size_t i = 0; i < sizeof raw; i++)
        (void)snprintf(l->nonce + 2 * i, 3, "%02x", raw[i]);
    (void)snprintf(l->mark, sizeof l->mark, "%s|", l->nonce);
    return LL_OK;
}

static bool is_name(const struct ll_key *key)
{
    return key->len > 0 && key->len <= LL_KEY_MAX && key->name[0] != '!';
}

static int store_names(struct ll_lock *l, const struct ll_key *keys, size_t n)
{
    const struct ll_client *c = l->client;
    size_t bytes = 0;
    size_t at = 0;

    if (n == 0 || n > LL_KEYS_MAX)
        return ll_fail(l->client, LL_E_INVAL, "1 to %d keys, not %zu", LL_KEYS_MAX, n);
    for (size_t i = 0; i < n; i++) {
        if (!is_name(&keys[i]))
            return ll_fail(l->client, LL_E_INVAL,
                           "key %zu: 1 to %d bytes, not starting with !", i,
                           LL_KEY_MAX);
        bytes += c->prefix_len + keys[i].len;
    }
    if (ll_lock_reserve(l, n, bytes) != LL_OK)
        return LL_E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        l->offsets[i] = at;
        memcpy(l->names + at, c->prefix, c->prefix_len);
        memcpy(l->names + at + c->prefix_len, keys[i].name, keys[i].len);
        at += c->prefix_len + keys[i].len;
        l->slots[i] = (struct ll_slot){LL_OK, 0};
    }
    l->offsets[n] = at;
    l->n = n;
    return LL_OK;
}

/* Marks the busy keys of {head..., index, pttl, index, pttl, ...}. */
static int read_busy(struct ll_lock *l, const redisReply *reply, size_t from)
{
    for (size_t i = from; i + 1 < reply->elements; i += 2) {
        long long index = reply->element[i]->integer;

        if (index < 1 || (size_t)index > l->n || l->slots[index - 1].code != LL_OK)
            return ll_fail(l->client, LL_E_PROTO,
                           "the acquire script named a wrong key");
        l->slots[index - 1] = (struct ll_slot){LL_BUSY, reply->element[i + 1]->integer};
        l->granted--;
    }
    return LL_OK;
}

static int read_grant(struct ll_lock *l, const redisReply *reply)
{
    if (reply->elements < 2 || reply->element[1]->str == NULL)
        return ll_fail(l->client, LL_E_PROTO, "the acquire script gave no token");
    if (read_busy(l, reply, 2) != LL_OK)
        return LL_E_PROTO;
    l->token = strtoll(reply->element[1]->str, NULL, 10);
    if (l->token <= 0 || l->granted == 0)
        return ll_fail(l->client, LL_E_PROTO, "the acquire script gave a wrong token");
    return l->granted == l->n ? LL_OK : LL_PARTIAL;
}

static int read_answer(struct ll_lock *l, const redisReply *reply)
{
    const char *head;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0 ||
        reply->element[0]->str == NULL)
        return ll_fail(l->client, LL_E_PROTO, "the acquire script answered nonsense");
    head = reply->element[0]->str;
    l->granted = l->n;
    for (size_t i = 0; i < l->n; i++)
        l->slots[i] = (struct ll_slot){LL_OK, 0};
    if (strcmp(head, "ok") == 0)
        return read_grant(l, reply);
    if (strcmp(head, "busy") == 0) {
        int code = read_busy(l, reply, 1);

        for (size_t i = 0; i < l->n;
             i++) /* all-or-nothing: free keys were not taken either */
            l->slots[i].code = LL_BUSY;
        l->granted = 0;
        return code == LL_OK ? LL_BUSY : code;
    }
    l->granted = 0;
    if (strcmp(head, "late") == 0)
        return LATE;
    if (strcmp(head, "epoch") == 0)
        return ll_fail(l->client, LL_E_EPOCH, "%s", ll_strerror(LL_E_EPOCH));
    return ll_fail(l->client, LL_E_PROTO, "the acquire script answered nonsense");
}

static int ask(struct ll_lock *l, enum ll_mode mode, uint32_t lease_ms)
{
    struct ll_client *c = l->client;
    char record[LL_PREFIX_MAX + 8], lease[16], not_after[24];
    int argc = 3;
    redisReply *reply;
    int code = ll_connect(c);

    if (code != LL_OK)
        return code;
    (void)snprintf(record, sizeof record, "%s!fence", c->prefix);
    (void)snprintf(lease, sizeof lease, "%u", lease_ms);
    (void)snprintf(not_after, sizeof not_after, "%lld",
                   (long long)(ll_now_ms() + c->server_ahead_ms + c->reply_ms));
    l->argv[argc++] = record;
    for (size_t i = 0; i < l->n; i++) {
        l->lens[argc] = l->offsets[i + 1] - l->offsets[i];
        l->argv[argc++] = l->names + l->offsets[i];
    }
    for (int i = 0; i < 5; i++) {
        const char *args[] = {l->nonce, lease, c->ident, not_after,
                              mode == LL_ALL ? "all" : "any"};

        l->lens[argc] = strlen(args[i]);
        l->argv[argc++] = args[i];
    }
    l->lens[3] = strlen(record);
    code = ll_script(c, LUA_ACQUIRE, (int)l->n + 1, argc, l->argv, l->lens, &reply);
    if (code != LL_OK)
        return code;
    code = read_answer(l, reply);
    freeReplyObject(reply);
    return code;
}

int ll_acquire(struct ll_lock *l,
               const struct ll_key *keys,
               size_t n,
               enum ll_mode mode,
               uint32_t lease_ms)
{
    struct ll_client *c = l->client;
    bool unanswered = false;
    int code;

    l->n = l->granted = 0;
    l->token = 0;
    l->released = l->uncertain = false;
    if (lease_ms == 0)
        return ll_fail(c, LL_E_INVAL, "a lease of 0 ms would be over at once");
    code = store_names(l, keys, n);
    if (code == LL_OK)
        code = new_nonce(l);
    if (code != LL_OK)
        return code;
    l->deadline_ms = ll_now_ms() + lease_ms - (lease_ms / 100 + 2);
    for (int attempt = 0; attempt < 2; attempt++) {
        code = ask(l, mode, lease_ms);
        unanswered = unanswered || code == LL_E_UNCERTAIN;
        if (code == LATE)
            ll_disconnect(
                c); /* the clocks moved apart: the next handshake compares them */
        else if (code != LL_E_UNCERTAIN)
            break;
    }
    if (code == LATE)
        code = ll_fail(c, LL_E_UNAVAILABLE, "Redis ran the command after its time");
    if (unanswered && code == LL_E_UNAVAILABLE)
        code = LL_E_UNCERTAIN;
    l->uncertain = unanswered && code < 0;
    if (l->granted > 0 && !ll_valid(l, 0)) {
        (void)ll_release(l);
        code =
            ll_fail(c, LL_E_UNAVAILABLE, "the lease was over before the answer came");
    }
    return code;
}

int ll_try(struct ll_lock *l, const char *name, uint32_t lease_ms)
{
    struct ll_key key = {name, strlen(name)};

    return ll_acquire(l, &key, 1, LL_ALL, lease_ms);
}

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
#include "common/lock/mutant.h"

/* Not a code that callers see: the server refused a command that ran after its time. */
enum { LATE = 100 };

/* ---- preparation ---- */

static int new_nonce(struct ll_lock *l)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char raw[LL_NONCE_HEX / 2];
    size_t have = 0;

    while (have < sizeof raw) { /* unbuffered, so that a fork never repeats one */
        ssize_t n = getrandom(raw + have, sizeof raw - have, 0);

        if (n < 0 && errno != EINTR)
            return ll_fail(l->client, LL_E_UNAVAILABLE, "getrandom: %s",
                           strerror(errno));
        have += n > 0 ? (size_t)n : 0;
    }
    for (size_t i = 0; i < sizeof raw; i++) {
        l->nonce[2 * i] = digits[raw[i] >> 4];
        l->nonce[2 * i + 1] = digits[raw[i] & 15];
    }
    (void)snprintf(l->mark, sizeof l->mark, "%s|", l->nonce);
    if (l->nonce_copy != NULL)
        memcpy(l->nonce_copy, l->nonce, sizeof l->nonce);
    return LL_OK;
}

static void clear(struct ll_lock *l)
{
    l->n = l->granted = 0;
    l->token = MUTANT("token-from-a-stale-reply") ? l->token : 0;
    l->holds = 0;
    l->released = l->uncertain = l->unreachable = false;
    l->lost = false;
    l->release_code = LL_OK;
}

/* ---- the script's answer ---- */

/* Marks the busy keys of {head..., index, pttl, index, pttl, ...}. */
static int read_busy(
    struct ll_lock *l, size_t first, size_t n, const redisReply *reply, size_t from)
{
    for (size_t i = from; i + 1 < reply->elements; i += 2) {
        long long index = reply->element[i]->integer;
        struct ll_slot *slot;

        if (index < 1 || (size_t)index > n)
            return ll_fail(l->client, LL_E_PROTO,
                           "the acquire script named a wrong key");
        slot = &l->slots[first + (size_t)index - 1];
        slot->code = LL_BUSY;
        slot->busy_ms = reply->element[i + 1]->integer;
        slot->busy_ms = slot->busy_ms == -2 ? 0 : slot->busy_ms; /* free, not taken */
    }
    return LL_OK;
}

static size_t count_granted(const struct ll_lock *l, size_t first, size_t n)
{
    size_t granted = 0;

    for (size_t i = first; i < first + n; i++)
        granted += l->slots[i].code == LL_OK ? 1 : 0;
    return granted;
}

static int
read_grant(struct ll_lock *l, size_t first, size_t n, const redisReply *reply)
{
    int64_t token;
    size_t granted;

    if (reply->elements < 2 || reply->element[1]->str == NULL)
        return ll_fail(l->client, LL_E_PROTO, "the acquire script gave no token");
    if (read_busy(l, first, n, reply, 2) != LL_OK)
        return LL_E_PROTO;
    token = strtoll(reply->element[1]->str, NULL, 10);
    granted = count_granted(l, first, n);
    if (token <= 0 || granted == 0)
        return ll_fail(l->client, LL_E_PROTO, "the acquire script gave a wrong token");
    for (size_t i = first; i < first + n; i++)
        l->slots[i].token = l->slots[i].code == LL_OK ? token : 0;
    return granted == n ? LL_OK : LL_PARTIAL;
}

static int
read_answer(struct ll_lock *l, size_t first, size_t n, const redisReply *reply)
{
    const char *head;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0 ||
        reply->element[0]->str == NULL)
        return ll_fail(l->client, LL_E_PROTO, "the acquire script answered nonsense");
    head = reply->element[0]->str;
    for (size_t i = first; i < first + n; i++)
        l->slots[i] = (struct ll_slot){.code = LL_OK};
    if (strcmp(head, "ok") == 0)
        return read_grant(l, first, n, reply);
    if (strcmp(head, "busy") == 0) {
        int code = read_busy(l, first, n, reply, 1);

        for (size_t i = first; i < first + n; i++) /* free ones were not taken either */
            l->slots[i].code = LL_BUSY;
        return code == LL_OK ? LL_BUSY : code;
    }
    if (strcmp(head, "late") == 0)
        return LATE;
    if (strcmp(head, "epoch") == 0)
        return ll_fail(l->client, LL_E_EPOCH, "%s", ll_strerror(LL_E_EPOCH));
    return ll_fail(l->client, LL_E_PROTO, "the acquire script answered nonsense");
}

static int
ask(struct ll_lock *l, size_t first, size_t n, enum ll_mode mode, uint32_t ttl_ms)
{
    struct ll_client *c = l->client;
    char record[LL_PREFIX_MAX + 8], ttl[16], not_after[24], marks[16];
    char not_before[24];
    const char *args[] = {l->nonce,
                          ttl,
                          c->nodes[0].ident,
                          not_after,
                          mode == LL_ALL ? "all" : "any",
                          marks,
                          not_before};
    int64_t server_ms;
    int argc = 3;
    redisReply *reply;
    int code = ll_connect(c);

    if (code != LL_OK)
        return code;
    (void)snprintf(ttl, sizeof ttl, "%u", ttl_ms);
    server_ms = ll_now_ms() + c->nodes[0].server_ahead_ms;
    (void)snprintf(not_after, sizeof not_after, "%lld",
                   (long long)(MUTANT("late-command-grants")
                                   ? INT64_C(1) << 50
                                   : server_ms + c->reply_ms));
    (void)snprintf(not_before, sizeof not_before, "%lld",
                   (long long)(server_ms - c->reply_ms));
    l->argv[argc] = record;
    l->lens[argc++] = (size_t)snprintf(record, sizeof record, "%s!fence", c->prefix);
    for (size_t i = first; i < first + n; i++, argc++)
        l->argv[argc] = ll_name(l, i, &l->lens[argc]);
    (void)snprintf(marks, sizeof marks, "%u", l->marks);
    for (int i = 0; i < 7; i++, argc++) {
        l->argv[argc] = args[i];
        l->lens[argc] = strlen(args[i]);
    }
    code = ll_script(c, LUA_ACQUIRE, (int)n + 1, argc, l->argv, l->lens, &reply);
    if (code != LL_OK)
        return code;
    code = read_answer(l, first, n, reply);
    freeReplyObject(reply);
    return code;
}

/* ---- chunks ---- */

/* One script call, asked for again when its answer was lost or it ran too late. */
static int acquire_chunk(
    struct ll_lock *l, size_t first, size_t n, enum ll_mode mode, uint32_t ttl_ms)
{
    bool unanswered = false;
    int code = LL_E_UNAVAILABLE;

    for (int attempt = 0; attempt < 2; attempt++) {
        if (MUTANT("new-nonce-for-a-repeat") && attempt > 0 && new_nonce(l) != LL_OK)
            break;
        code = l->client->no_scripts ? ll_plain_acquire(l, first, n, mode, ttl_ms)
                                     : ask(l, first, n, mode, ttl_ms);
        unanswered = unanswered || code == LL_E_UNCERTAIN;
        l->unreachable = code == LL_E_UNAVAILABLE;
        if (code == LATE || code == LL_E_EPOCH)
            ll_disconnect(
                l->client); /* the clocks moved apart, or the server has another
                               replication id since we asked who it is */
        else if (code != LL_E_UNCERTAIN)
            break;
    }
    if (code == LATE)
        code = ll_fail(l->client, LL_E_UNAVAILABLE,
                       "Redis ran the command after its time");
    if (unanswered && code == LL_E_UNAVAILABLE)
        code = LL_E_UNCERTAIN;
    l->uncertain = l->uncertain || (unanswered && code < 0);
    return code;
}

static int acquire_chunks(struct ll_lock *l, enum ll_mode mode, uint32_t ttl_ms)
{
    size_t asked = 0;
    int code = LL_OK;

    while (asked < l->n && code >= 0) {
        size_t n = l->n - asked < LL_KEYS_MAX ? l->n - asked : LL_KEYS_MAX;

        code = acquire_chunk(l, asked, n, mode, ttl_ms);
        asked += n;
        if (mode == LL_ALL && code == LL_BUSY)
            break;
    }
    for (size_t i = asked; i < l->n; i++) /* never asked for */
        l->slots[i].code = LL_BUSY;
    if (code < 0 && !l->uncertain) {
        for (size_t i = asked - (asked - 1) % LL_KEYS_MAX - 1; i < asked; i++)
            l->slots[i].code = LL_BUSY; /* the chunk that failed holds nothing */
    }
    l->granted = count_granted(l, 0, l->n);
    if (code < 0)
        return code;
    if (l->granted == l->n)
        return LL_OK;
    return l->granted == 0 ? LL_BUSY : LL_PARTIAL;
}

/* WAIT for replicas: the lock is given back when too few of them have it. */
static int replicate(struct ll_lock *l)
{
    struct ll_client *c = l->client;
    char replicas[16], wait_ms[24];
    redisReply *reply;
    bool enough;
    int code;

    (void)snprintf(replicas, sizeof replicas, "%u", c->replicas);
    (void)snprintf(wait_ms, sizeof wait_ms, "%lld", (long long)c->reply_ms / 2);
    code = ll_words(c, &c->nodes[0], ll_now_ms() + c->reply_ms, &reply, 3,
                    (const char *[]){"WAIT", replicas, wait_ms});
    if (code != LL_OK)
        return code;
    enough = reply->type == REDIS_REPLY_INTEGER && reply->integer >= c->replicas;
    freeReplyObject(reply);
    return enough ? LL_OK
                  : ll_fail(c, LL_E_NOT_REPLICATED, "%s",
                            ll_strerror(LL_E_NOT_REPLICATED));
}

/* Gives back what was taken on the way to a refusal; the refusal's words stay. */
static int give_back(struct ll_lock *l, int code)
{
    char words[LL_ERROR_MAX];
    bool uncertain = l->uncertain;

    (void)snprintf(words, sizeof words, "%s", l->client->error);
    if (!l->unreachable) /* nobody there to give it back to: the lease ends it */
        (void)ll_release(l);
    for (size_t i = 0; i < l->n; i++) {
        l->slots[i].token = 0;
        if (l->slots[i].code != LL_BUSY)
            l->slots[i].code = code >= 0 ? LL_BUSY : l->slots[i].code;
    }
    l->granted = 0;
    l->token = 0;
    l->released = false;
    l->uncertain = uncertain;
    return ll_fail(l->client, code, "%s", words);
}

static int conclude(struct ll_lock *l, enum ll_mode mode, int code)
{
    if (code >= 0 && l->granted > 0 && l->client->replicas > 0) {
        int wait = replicate(l);

        code = wait == LL_OK ? code : wait;
    }
    if (l->granted > 0 && (code < 0 || (mode == LL_ALL && code != LL_OK)))
        return give_back(l, code < 0 ? code : LL_BUSY);
    if (l->granted > 0 && !ll_valid(l, 0)) {
        (void)ll_fail(l->client, 0, "the lease was over before the answer came");
        return give_back(l, LL_E_UNAVAILABLE);
    }
    for (size_t i = 0; l->granted > 0 && l->token == 0; i++)
        l->token = l->slots[i].token;
    l->holds = l->granted > 0 ? 1 : 0;
    return code;
}

/* The same holder again: the lease is refreshed, the hold counted. */
static int
hold_again(struct ll_lock *l, const struct ll_key *keys, size_t n, uint32_t lease_ms)
{
    int code;

    if (n != l->n)
        return ll_fail(l->client, LL_E_INVAL, "the lock is held over other keys");
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *name = ll_name(l, i, &len);

        if (len != l->client->prefix_len + keys[i].len ||
            memcmp(name + l->client->prefix_len, keys[i].name, keys[i].len) != 0)
            return ll_fail(l->client, LL_E_INVAL, "the lock is held over other keys");
    }
    code = ll_extend(l, lease_ms);
    if (code == LL_OK)
        l->holds++;
    return code;
}

int ll_acquire(struct ll_lock *l,
               const struct ll_key *keys,
               size_t n,
               enum ll_mode mode,
               uint32_t lease_ms)
{
    struct ll_client *c = l->client;
    uint32_t ttl_ms = lease_ms + l->tolerance_ms;
    int code = ll_check_owner(c);

    if (code != LL_OK)
        return code;
    if (lease_ms == 0 || ttl_ms < lease_ms)
        return ll_fail(c, LL_E_INVAL, "a lease of 0 ms would be over at once");
    if (l->holds > 0 && l->reentrant)
        return hold_again(l, keys, n, lease_ms);
    if (l->holds > 0 && ll_valid(l, 0))
        return ll_fail(c, LL_E_INVAL, "the lock is held; release or abandon it first");
    ll_renew_forget(l);
    clear(l);
    code = ll_store_names(l, keys, n);
    if (code == LL_OK)
        code = ll_check_distinct(l);
    if (code == LL_OK)
        code = new_nonce(l);
    if (code != LL_OK) {
        clear(l);
        return code;
    }
    l->lease_ms = lease_ms;
    l->deadline_ms = ll_deadline(lease_ms);
    code = c->node_ct > 1 ? ll_quorum_acquire(l, mode, ttl_ms)
                          : acquire_chunks(l, mode, ttl_ms);
    return conclude(l, mode, code);
}

void ll_abandon(struct ll_lock *l)
{
    ll_renew_forget(l);
    clear(l);
}

int ll_try(struct ll_lock *l, const char *name, uint32_t lease_ms)
{
    struct ll_key key = {name, strlen(name)};

    return ll_acquire(l, &key, 1, LL_ALL, lease_ms);
}

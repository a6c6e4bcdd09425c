/* plain_acquire: a tenure without scripts: the token is minted and the keys are set in
 * one MULTI/EXEC, under a watch on the record that the token comes from. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/plain.h"

static int64_t number(const redisReply *reply)
{
    return reply->str != NULL ? strtoll(reply->str, NULL, 10) : 0;
}

/* The token that the next tenure gets while the record stays as it was looked at. */
static int next_token(struct ll_plain *p, const redisReply *record, int64_t *token)
{
    const char *ident;
    int64_t n;

    if (record->type != REDIS_REPLY_ARRAY || record->elements != 3)
        return ll_fail(p->c, LL_E_PROTO, "HMGET answered nonsense");
    ident = record->element[1]->str;
    n = number(record->element[2]) + 1;
    if (ident == NULL || strcmp(ident, p->c->nodes[0].ident) != 0 ||
        n >= INT64_C(1) << 40)
        return ll_fail(p->c, LL_E_EPOCH, "%s", ll_strerror(LL_E_EPOCH));
    *token = number(record->element[0]) * (INT64_C(1) << 40) + n;
    return LL_OK;
}

/* Codes of the keys by what was found; a free one is LL_OK without a token. How many
 * are free or ours, and the token of ours, which a try before has taken. */
static size_t sort_out(struct ll_plain *p, const redisReply *values, int64_t *ours)
{
    size_t usable = 0;

    *ours = 0;
    for (size_t i = 0; i < p->n; i++) {
        struct ll_slot *slot = ll_plain_slot(p, i);
        const redisReply *value = values->element[i];
        char who = ll_plain_whose(p->l, value);

        *slot = (struct ll_slot){.code = who == '-' ? LL_BUSY : LL_OK};
        if (who == '1')
            *ours = slot->token = strtoll(value->str + strlen(p->l->mark), NULL, 10);
        usable += who == '-' ? 0 : 1;
    }
    return usable;
}

/* The time that the holders of the busy keys have left. */
static int ask_busy(struct ll_plain *p)
{
    size_t at_reply = 0;
    int code;

    ll_pipe_clear(&p->pipe);
    for (size_t i = 0; i < p->n; i++) {
        if (ll_plain_slot(p, i)->code == LL_BUSY)
            ll_plain_add_key(p, "PTTL", i);
    }
    if (p->pipe.n == 0)
        return LL_OK;
    code = ll_plain_look(p);
    for (size_t i = 0; code == LL_OK && i < p->n; i++) {
        struct ll_slot *slot = ll_plain_slot(p, i);

        if (slot->code == LL_BUSY) {
            long long left = p->pipe.replies[at_reply++]->integer;

            slot->busy_ms = left == -2 ? 0 : left;
        }
    }
    return code;
}

/* What is granted of the keys, told like the script tells it. */
static int conclude(struct ll_plain *p, enum ll_mode mode)
{
    size_t granted = 0;
    int code = ask_busy(p);

    for (size_t i = 0; i < p->n; i++) {
        struct ll_slot *slot = ll_plain_slot(p, i);

        if (slot->token == 0)
            slot->code = LL_BUSY; /* free, but not taken either */
        granted += slot->code == LL_OK ? 1 : 0;
    }
    if (code != LL_OK && granted > 0)
        code = LL_OK; /* held all the same; only the busy times are not known */
    if (code != LL_OK)
        return code;
    if (granted == p->n)
        return LL_OK;
    return granted == 0 ? LL_BUSY : mode == LL_ALL ? LL_BUSY : LL_PARTIAL;
}

/* Mints the token and takes the free keys in one step. NX although they are watched: a
 * key of another type reads as nothing and is not ours. */
static int take(struct ll_plain *p, const char *record, int64_t token, uint32_t ttl_ms)
{
    char value[LL_NONCE_HEX + 32], ttl[16];
    const char *argv[] = {"SET", NULL, value, "NX", "PX", ttl};
    size_t lens[] = {3, 0, 0, 2, 2, 0};
    size_t set = 1; /* of EXEC's answers: HINCRBY's is the first */
    int code;

    lens[2] =
        (size_t)snprintf(value, sizeof value, "%s%lld", p->l->mark, (long long)token);
    lens[5] = (size_t)snprintf(ttl, sizeof ttl, "%u", ttl_ms);
    ll_pipe_clear(&p->pipe);
    ll_plain_add_word(p, "MULTI");
    ll_pipe_words(&p->pipe, 4, (const char *[]){"HINCRBY", record, "n", "1"});
    for (size_t i = 0; i < p->n; i++) {
        argv[1] = ll_name(p->l, ll_plain_at(p, i), &lens[1]);
        if (ll_plain_slot(p, i)->code == LL_OK)
            ll_pipe_add(&p->pipe, 6, argv, lens);
    }
    code = ll_plain_change(p);
    for (size_t i = 0; code == LL_OK && i < p->n; i++) {
        struct ll_slot *slot = ll_plain_slot(p, i);
        const redisReply *exec = ll_plain_exec(p);

        if (slot->code != LL_OK)
            continue;
        if (set < exec->elements && exec->element[set++]->type == REDIS_REPLY_STATUS)
            slot->token = token;
        else
            slot->code = LL_BUSY;
    }
    return code;
}

/* Looks, and takes what is free unless that would not do. A key that is ours already
 * was taken by a try whose answer was lost: nothing is added to that tenure, since its
 * token may be lower by now than one that a key has seen in between. */
static int try_acquire(struct ll_plain *p, enum ll_mode mode, uint32_t ttl_ms)
{
    char record[LL_PREFIX_MAX + 8];
    int64_t token = 0, ours;
    size_t usable;
    int code;

    (void)snprintf(record, sizeof record, "%s!fence", p->c->prefix);
    ll_pipe_clear(&p->pipe);
    ll_plain_add_word(p, "UNWATCH"); /* what an earlier try may have left */
    ll_pipe_words(&p->pipe, 2, (const char *[]){"WATCH", record});
    /* changes nothing; a demoted primary must say READONLY, not what it last knew */
    ll_pipe_words(&p->pipe, 3, (const char *[]){"HDEL", record, ""});
    if (mode == LL_ALL)
        ll_plain_add_keys(p, "WATCH");
    ll_pipe_words(&p->pipe, 5,
                  (const char *[]){"HMGET", record, "epoch", "ident", "n"});
    ll_plain_add_keys(p, "MGET");
    code = ll_plain_look(p);
    if (code == LL_OK)
        code = next_token(p, p->pipe.replies[p->pipe.n - 2], &token);
    if (code == LL_OK)
        code = ll_plain_check(p, p->pipe.replies[p->pipe.n - 1]);
    if (code != LL_OK)
        return code;
    usable = sort_out(p, p->pipe.replies[p->pipe.n - 1], &ours);
    if (ours == 0 && usable > 0 && (mode == LL_ANY || usable == p->n))
        code = take(p, record, token, ttl_ms);
    return code == LL_OK ? conclude(p, mode) : code;
}

int ll_plain_acquire(
    struct ll_lock *l, size_t first, size_t n, enum ll_mode mode, uint32_t ttl_ms)
{
    struct ll_plain p = ll_plain_begin(l->client);
    int code;

    p.l = l;
    p.first = first;
    p.n = n;
    do {
        code = try_acquire(&p, mode, ttl_ms);
    } while (ll_plain_again(&p, code));
    return ll_plain_end(&p, code);
}

/* plain_keep: longer leases without scripts, of any number of tenures in two round
 * trips: one looks under watch, one changes. The keys are watched from before they are
 * compared, so a takeover in between is noticed. */
#include <hiredis/hiredis.h>
#include <string.h>

#include "common/lock/plain.h"

static void add(struct ll_plain *p, const char *command, const struct ll_part *part)
{
    const char *argv[1 + LL_KEYS_MAX] = {command};
    size_t lens[1 + LL_KEYS_MAX] = {strlen(command)};
    size_t i = part->from;

    for (size_t j = 1; j <= part->n; j++, i = ll_next_granted(part->l, i + 1))
        argv[j] = ll_name(part->l, i, &lens[j]);
    ll_pipe_add(&p->pipe, (int)part->n + 1, argv, lens);
}

static void
add_one(struct ll_plain *p, const char *command, const struct ll_part *part, size_t i)
{
    const char *argv[] = {command, NULL, part->ttl};
    size_t lens[] = {strlen(command), 0, strlen(part->ttl)};

    argv[1] = ll_name(part->l, i, &lens[1]);
    ll_pipe_add(&p->pipe, strcmp(command, "PEXPIRE") == 0 ? 3 : 2, argv, lens);
}

/* Answers: UNWATCH's, then of each part WATCH's, MGET's, and PTTL's of every key. */
static int look(struct ll_plain *p, const struct ll_part *parts, size_t n)
{
    ll_pipe_clear(&p->pipe);
    ll_plain_add_word(p, "UNWATCH"); /* what an earlier try may have left */
    for (const struct ll_part *part = parts; part < parts + n; part++) {
        size_t i = part->from;

        add(p, "WATCH", part);
        add(p, "MGET", part);
        for (size_t j = 0; j < part->n; j++, i = ll_next_granted(part->l, i + 1))
            add_one(p, "PTTL", part, i);
    }
    return ll_plain_look(p);
}

static int whose(struct ll_plain *p, struct ll_part *part, const redisReply *values)
{
    if (values->type != REDIS_REPLY_ARRAY || values->elements != part->n)
        return ll_fail(p->c, LL_E_PROTO, "MGET answered nonsense");
    part->code = LL_OK;
    for (size_t j = 0; j < part->n; j++) {
        if (ll_plain_whose(part->l, values->element[j]) != '1')
            part->code = LL_LOST;
    }
    return LL_OK;
}

/* Lengthens what is shorter, of the parts that are whole. */
static int change(struct ll_plain *p, struct ll_part *parts, size_t n)
{
    struct ll_pipe looked = p->pipe; /* read while the next commands are put together */
    redisReply **reply = looked.replies + 1;
    int code = LL_OK;

    p->pipe = (struct ll_pipe){0};
    ll_plain_add_word(p, "MULTI");
    for (struct ll_part *part = parts; code == LL_OK && part < parts + n; part++) {
        size_t i = part->from;

        code = whose(p, part, reply[1]);
        reply += 2;
        for (size_t j = 0; j < part->n; j++, i = ll_next_granted(part->l, i + 1)) {
            if ((*reply++)->integer < (long long)part->ttl_ms && part->code == LL_OK)
                add_one(p, "PEXPIRE", part, i);
        }
    }
    if (code == LL_OK && p->pipe.n > 1)
        code = ll_plain_change(p);
    ll_pipe_free(&looked);
    return code;
}

static int try_keep(struct ll_plain *p, struct ll_part *parts, size_t n)
{
    int code = look(p, parts, n);

    return code == LL_OK ? change(p, parts, n) : code;
}

/* Somebody changed one of all those keys: each part for itself then. */
static void
keep_each(struct ll_client *c, struct ll_part *parts, size_t n, int64_t until_ms)
{
    for (size_t i = 0; i < n; i++) {
        struct ll_plain p = ll_plain_begin(c);
        int code;

        p.until_ms = until_ms;
        do {
            code = ll_now_ms() < until_ms ? try_keep(&p, &parts[i], 1) : LL_PLAIN_AGAIN;
        } while (ll_plain_again(&p, code));
        code = ll_plain_end(&p, code);
        if (code != LL_OK)
            parts[i].code = code;
    }
}

int ll_plain_keep(struct ll_client *c,
                  struct ll_part *parts,
                  size_t n,
                  int64_t until_ms)
{
    struct ll_plain p = ll_plain_begin(c);
    int code = try_keep(&p, parts, n);

    if (code == LL_PLAIN_AGAIN) {
        keep_each(c, parts, n, until_ms);
        code = LL_OK;
    }
    return ll_plain_end(&p, code);
}

int ll_plain_extend(struct ll_lock *l, uint32_t ttl_ms)
{
    size_t at = 0;
    int code = LL_OK;

    while (code == LL_OK) {
        struct ll_plain p = ll_plain_begin(l->client);
        struct ll_part part = ll_part_cut(l, &at, LL_KEYS_MAX, ttl_ms);

        if (part.n == 0)
            break;
        do {
            code = try_keep(&p, &part, 1);
        } while (ll_plain_once_more(&p, code));
        code = ll_plain_end(&p, code);
        code = code == LL_OK ? part.code : code;
    }
    return code;
}

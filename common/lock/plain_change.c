/* plain_change: release and extend without scripts. The keys are watched from before
 * they are compared, so a takeover between the comparison and the change is noticed. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#include "common/lock/plain.h"

/* Reads the values of all keys under watch; with_left: and the time that each has. */
static int look(struct ll_plain *p, bool with_left, const redisReply **values)
{
    int code;

    ll_pipe_clear(&p->pipe);
    ll_plain_add_word(p, "UNWATCH"); /* what an earlier try may have left */
    ll_plain_add_keys(p, "WATCH");
    ll_plain_add_keys(p, "MGET");
    for (size_t i = 0; with_left && i < p->n; i++)
        ll_plain_add_key(p, "PTTL", i);
    code = ll_plain_look(p);
    if (code != LL_OK)
        return code;
    *values = p->pipe.replies[2];
    return ll_plain_check(p, *values);
}

/* The first lost answer is asked for again: doing the same twice does no harm. */
static bool once_more(struct ll_plain *p, int code, int *unanswered)
{
    if (code != LL_E_UNCERTAIN)
        return ll_plain_again(p, code);
    p->until_ms = ll_now_ms() + p->c->reply_ms;
    return ++*unanswered == 1;
}

static int end(struct ll_plain *p, int code, int unanswered)
{
    code = ll_plain_end(p, code);
    return code == LL_E_UNAVAILABLE && unanswered > 0 ? LL_E_UNCERTAIN : code;
}

/* ---- release ---- */

/* Codes of the keys; ours are LL_OK. A key found gone although a try before, with its
 * answer lost, may have deleted it was ours until then. */
static size_t sort_out(struct ll_plain *p, const redisReply *values)
{
    size_t ours = 0;

    for (size_t i = 0; i < p->n; i++) {
        struct ll_slot *slot = ll_plain_slot(p, i);
        char who = ll_plain_whose(p, values->element[i]);

        if (who == '1' || (who == '0' && slot->given_back))
            slot->code = LL_OK;
        else
            slot->code = who == '-' ? LL_NOT_OWNER : LL_GONE;
        ours += who == '1' ? 1 : 0;
    }
    return ours;
}

static void note_given_back(struct ll_plain *p)
{
    for (size_t i = 0; i < p->n; i++) {
        struct ll_slot *slot = ll_plain_slot(p, i);

        slot->given_back = slot->given_back || slot->code == LL_OK;
    }
}

static int try_release(struct ll_plain *p)
{
    const redisReply *values;
    struct ll_pipe looked;
    bool was_valid = ll_valid(p->l, 0);
    int code = look(p, false, &values);

    if (code != LL_OK || sort_out(p, values) == 0)
        return code;
    looked = p->pipe; /* values are read while the next commands are put together */
    p->pipe = (struct ll_pipe){0};
    ll_plain_add_word(p, "MULTI");
    for (size_t i = 0; i < p->n; i++) {
        if (ll_plain_whose(p, values->element[i]) == '1')
            ll_plain_add_key(p, "DEL", i);
    }
    code = ll_plain_change(p);
    if (code == LL_OK || (code == LL_E_UNCERTAIN && was_valid))
        note_given_back(p);
    ll_pipe_free(&looked);
    return code;
}

int ll_plain_release(struct ll_lock *l, const size_t *index, size_t n)
{
    struct ll_plain p = ll_plain_begin(l->client);
    int unanswered = 0;
    int code;

    p.l = l;
    p.index = index;
    p.n = n;
    do {
        code = try_release(&p);
    } while (once_more(&p, code, &unanswered));
    return end(&p, code, unanswered);
}

/* ---- extend ---- */

/* Lengthens what is shorter, and only if every key is ours. */
static int try_extend(struct ll_plain *p, uint32_t ttl_ms)
{
    const redisReply *values;
    struct ll_pipe looked;
    char ttl[16];
    const char *argv[] = {"PEXPIRE", NULL, ttl};
    size_t lens[] = {7, 0, (size_t)snprintf(ttl, sizeof ttl, "%u", ttl_ms)};
    int code = look(p, true, &values);

    for (size_t i = 0; code == LL_OK && i < p->n; i++)
        code = ll_plain_whose(p, values->element[i]) == '1' ? LL_OK : LL_LOST;
    if (code != LL_OK)
        return code;
    looked = p->pipe;
    p->pipe = (struct ll_pipe){0};
    ll_plain_add_word(p, "MULTI");
    for (size_t i = 0; i < p->n; i++) {
        argv[1] = ll_name(p->l, ll_plain_at(p, i), &lens[1]);
        if (ttl_ms > 0 && looked.replies[3 + i]->integer < (long long)ttl_ms)
            ll_pipe_add(&p->pipe, 3, argv, lens);
    }
    if (p->pipe.n > 1)
        code = ll_plain_change(p);
    ll_pipe_free(&looked);
    return code;
}

static int
extend_chunk(struct ll_lock *l, const size_t *index, size_t n, uint32_t ttl_ms)
{
    struct ll_plain p = ll_plain_begin(l->client);
    int unanswered = 0;
    int code;

    p.l = l;
    p.index = index;
    p.n = n;
    do {
        code = try_extend(&p, ttl_ms);
    } while (once_more(&p, code, &unanswered));
    return end(&p, code, unanswered);
}

int ll_plain_extend(struct ll_lock *l, uint32_t ttl_ms)
{
    size_t index[LL_KEYS_MAX];
    size_t n = 0;
    int code = LL_OK;

    for (size_t i = 0; i < l->n && code == LL_OK; i++) {
        if (l->slots[i].code == LL_OK)
            index[n++] = i;
        if (n == LL_KEYS_MAX || (i + 1 == l->n && n > 0)) {
            code = extend_chunk(l, index, n, ttl_ms);
            n = 0;
        }
    }
    return code;
}

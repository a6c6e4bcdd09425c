/* plain_release: release without scripts. The keys are watched from before
 * they are compared, so a takeover between the comparison and the change is noticed. */
#include <hiredis/hiredis.h>
#include <string.h>

#include "common/lock/plain.h"

/* Reads the values of all keys under watch. */
static int look(struct ll_plain *p, const redisReply **values)
{
    int code;

    ll_pipe_clear(&p->pipe);
    ll_plain_add_word(p, "UNWATCH"); /* what an earlier try may have left */
    ll_plain_add_keys(p, "WATCH");
    ll_plain_add_keys(p, "MGET");
    code = ll_plain_look(p);
    if (code != LL_OK)
        return code;
    *values = p->pipe.replies[2];
    return ll_plain_check(p, *values);
}

/* Codes of the keys; ours are LL_OK. A key found gone although a try before, with its
 * answer lost, may have deleted it was ours until then. */
static size_t sort_out(struct ll_plain *p, const redisReply *values)
{
    size_t ours = 0;

    for (size_t i = 0; i < p->n; i++) {
        struct ll_slot *slot = ll_plain_slot(p, i);
        char who = ll_plain_whose(p->l, values->element[i]);

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
    int code = look(p, &values);

    if (code != LL_OK || sort_out(p, values) == 0)
        return code;
    looked = p->pipe; /* values are read while the next commands are put together */
    p->pipe = (struct ll_pipe){0};
    ll_plain_add_word(p, "MULTI");
    for (size_t i = 0; i < p->n; i++) {
        if (ll_plain_whose(p->l, values->element[i]) == '1')
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
    int code;

    p.l = l;
    p.index = index;
    p.n = n;
    do {
        code = try_release(&p);
    } while (ll_plain_once_more(&p, code));
    return ll_plain_end(&p, code);
}

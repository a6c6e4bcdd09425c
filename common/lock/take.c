/* take: an acquire, with replicas; releases what it may have taken before a fault. */
#include <stdio.h>
#include <string.h>

#include "common/lock/internal.h"

void ll_note_grants(struct ll_lock *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->slots[i].held = l->slots[i].code == LL_OK;
        l->granted += l->slots[i].held ? 1 : 0;
    }
}

void ll_drop_grants(struct ll_lock *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->slots[i].held = false;
        l->slots[i].code = LL_BUSY;
    }
    l->granted = 0;
    l->token = 0;
    l->released = l->releasing = false;
}

/* WAIT for replicas: the lock is released when too few of them have it. */
static int replicate(struct ll_lock *l)
{
    struct ll_client *c = l->client;
    struct ll_node *node = &c->nodes[0];
    int64_t enough = 0;

    ll_talk_begin(node, 1);
    ll_put_command(&node->out, 3);
    ll_put_word(&node->out, "WAIT");
    ll_put_number(&node->out, c->o.replicas);
    ll_put_number(&node->out, ll_most(c->o.reply_ms / 2, 1));
    ll_talk(c, 1, ll_reply_deadline(c, c->o.reply_ms), NULL, NULL);
    if (node->code != LL_OK) /* the lock is granted, but the answer is lost */
        return LL_E_UNCERTAIN;
    if (!ll_reply_number(node->replies[0], &enough))
        return ll_reply_code(c, node, node->replies[0]);
    return enough >= c->o.replicas ? LL_OK : ll_fail_as(c, LL_E_NOT_REPLICATED);
}

/* Releases the keys that were taken before a refusal; the error text of the refusal
 * stays. Keys whose release failed may still be held. */
static int give_back(struct ll_lock *l, int code)
{
    char words[LL_ERROR_MAX];

    memcpy(words, l->client->error, sizeof words);
    l->uncertain = true;
    l->uncertain = ll_give_all(l) < 0;
    ll_drop_grants(l);
    return ll_fail(l->client, code, "%s", words);
}

static int conclude(struct ll_lock *l, int code)
{
    if (l->granted > 0 && l->client->o.replicas > 0) {
        int wait = replicate(l);

        code = wait == LL_OK ? code : wait;
    }
    if (l->granted > 0 && code >= 0 && ll_now_ms() >= l->deadline_ms)
        code = ll_fail(l->client, LL_E_UNAVAILABLE,
                       "the lease was over before the answer came");
    return code < 0 && (l->granted > 0 || l->uncertain) ? give_back(l, code) : code;
}

int ll_prepare(struct ll_lock *l, const struct ll_key *keys, size_t n)
{
    int code;

    ll_renew_forget(l);
    ll_clear(l);
    code = ll_store_names(l, keys, n);
    if (code == LL_OK)
        code = ll_new_nonce(l);
    if (code != LL_OK)
        ll_clear(l);
    return code;
}

int ll_take_all(struct ll_lock *l,
                const struct ll_key *keys,
                size_t n,
                enum ll_mode mode,
                uint32_t lease_ms)
{
    struct ll_client *c = l->client;
    int code = ll_check_lease(l, lease_ms);

    if (code == LL_OK)
        code = ll_check_mode(l, (int)mode);
    if (code != LL_OK)
        return code;
    if (l->async_call != NULL)
        return ll_fail(c, LL_E_INVAL, "a call of the event loop is under way");
    if (ll_valid(l, 0))
        return ll_fail(c, LL_E_INVAL, "the lock is held; release or abandon it first");
    code = ll_prepare(l, keys, n);
    if (code == LL_OK)
        code = ll_gather(c, true);
    if (code != LL_OK)
        return code;
    l->lease_ms = lease_ms;
    l->deadline_ms = ll_deadline(lease_ms); /* no command was sent */
    code = ll_vote(l, mode);
    ll_note_grants(l);
    return conclude(l, code);
}

/* ---- the calls ---- */

int ll_acquire(struct ll_lock *l,
               const struct ll_key *keys,
               size_t n,
               enum ll_mode mode,
               uint32_t lease_ms)
{
    int64_t began_us = ll_now_us();
    int code = ll_enter(l->client);

    if (code != LL_OK)
        return code;
    code = ll_take_all(l, keys, n, mode, lease_ms);
    return ll_leave(l->client,
                    (struct ll_event){LL_EV_ACQUIRE, code, n, l->granted, began_us});
}

int ll_try(struct ll_lock *l, const char *name, uint32_t lease_ms)
{
    struct ll_key key = {name, strlen(name)};

    return ll_acquire(l, &key, 1, LL_ALL, lease_ms);
}

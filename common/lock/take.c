/* take: an acquire, with replicas; releases what it may have taken before a fault. */
#include <stdio.h>
#include <string.h>

#include "common/lock/internal.h"

void rlock_note_grants(struct rlock_lock *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->slots[i].held = l->slots[i].code == RLOCK_OK;
        l->granted += l->slots[i].held ? 1 : 0;
    }
}

void rlock_drop_grants(struct rlock_lock *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->slots[i].held = false;
        l->slots[i].code = RLOCK_BUSY;
    }
    l->granted = 0;
    l->token = 0;
    l->released = l->releasing = false;
}

/* WAIT for replicas: the lock is released when too few of them have it. */
static int replicate(struct rlock_lock *l, int64_t limit_ms)
{
    struct rlock_client *c = l->client;
    struct rlock_node *node = &c->nodes[0];
    struct rlock_ask ask = {.c = c};
    const redisReply *reply;
    int64_t enough = 0;
    int code = RLOCK_OK;

    rlock_link_begin(&node->link, &ask.x, 1);
    rlock_put_command(&node->link.out, 3);
    rlock_put_word(&node->link.out, "WAIT");
    rlock_put_number(&node->link.out, c->o.replicas);
    rlock_put_number(&node->link.out, rlock_most(c->o.reply_ms / 2, 1));
    reply = rlock_ask(&ask, rlock_least(rlock_now_ms() + c->o.reply_ms, limit_ms));
    if (reply == NULL) /* the lock is granted, but the answer is lost */
        code = RLOCK_E_UNCERTAIN;
    else if (!rlock_reply_number(reply, &enough))
        code = rlock_reply_code(c, node, reply);
    else if (enough < c->o.replicas)
        code = rlock_fail_as(c, RLOCK_E_NOT_REPLICATED);
    rlock_exchange_clear(&ask.x);
    return code;
}

/* Releases the keys that were taken before a refusal; the error text of the refusal
 * stays. Keys whose release failed may still be held. */
static int give_back(struct rlock_lock *l, int code, int64_t limit_ms)
{
    char words[RLOCK_ERROR_MAX];

    memcpy(words, l->client->error, sizeof words);
    l->uncertain = true;
    rlock_give_late(l);
    l->uncertain = rlock_give_all(l, limit_ms) < 0;
    rlock_drop_grants(l);
    return rlock_fail(l->client, code, "%s", words);
}

static int conclude(struct rlock_lock *l, int code, int64_t limit_ms)
{
    if (l->granted > 0 && l->client->o.replicas > 0) {
        int wait = replicate(l, limit_ms);

        code = wait == RLOCK_OK ? code : wait;
    }
    if (l->granted > 0 && code >= 0 && rlock_now_ms() >= l->deadline_ms)
        code = rlock_fail(l->client, RLOCK_E_UNAVAILABLE,
                          "the lease was over before the answer came");
    return code < 0 && (l->granted > 0 || l->uncertain) ? give_back(l, code, limit_ms)
                                                        : code;
}

int rlock_prepare(struct rlock_lock *l, const struct rlock_key *keys, size_t n)
{
    int code;

    rlock_renew_forget(l);
    rlock_clear(l);
    code = rlock_store_names(l, keys, n);
    if (code == RLOCK_OK)
        code = rlock_new_nonce(l);
    if (code != RLOCK_OK)
        rlock_clear(l);
    return code;
}

int rlock_take_all(struct rlock_lock *l,
                   const struct rlock_key *keys,
                   size_t n,
                   enum rlock_mode mode,
                   uint32_t lease_ms,
                   int64_t limit_ms)
{
    struct rlock_client *c = l->client;
    int code = rlock_check_lease(l, lease_ms);

    if (code == RLOCK_OK)
        code = rlock_check_mode(l, (int)mode);
    if (code != RLOCK_OK)
        return code;
    if (l->async_call != NULL)
        return rlock_fail(c, RLOCK_E_INVAL, "a call of the event loop is under way");
    if (rlock_valid(l, 0))
        return rlock_fail(c, RLOCK_E_INVAL,
                          "the lock is held; release or abandon it first");
    code = rlock_prepare(l, keys, n);
    if (code == RLOCK_OK)
        code = rlock_gather(c, true, limit_ms);
    if (code != RLOCK_OK)
        return code;
    l->lease_ms = lease_ms;
    l->deadline_ms = rlock_deadline(lease_ms); /* no command was sent */
    code = rlock_vote(l, mode, limit_ms);
    rlock_note_grants(l);
    return conclude(l, code, limit_ms);
}

/* ---- the calls ---- */

int rlock_acquire(struct rlock_lock *l,
                  const struct rlock_key *keys,
                  size_t n,
                  enum rlock_mode mode,
                  uint32_t lease_ms)
{
    int64_t began_us = rlock_now_us();
    int code = rlock_check_owner(l->client);

    if (code != RLOCK_OK)
        return code;
    code = rlock_take_all(l, keys, n, mode, lease_ms, rlock_call_end(l->client));
    return rlock_leave(l->client, (struct rlock_event){RLOCK_EV_ACQUIRE, code, n,
                                                       l->granted, began_us});
}

int rlock_try(struct rlock_lock *l, const char *name, uint32_t lease_ms)
{
    struct rlock_key key = {name, strlen(name)};

    return rlock_acquire(l, &key, 1, RLOCK_ALL, lease_ms);
}

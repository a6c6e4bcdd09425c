/* take: an acquire, with replicas; releases what it may have taken before a fault. */
#include <stdio.h>
#include <string.h>

#include "common/lock/operation.h"

void rlock_note_grants(struct rlock *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->slots[i].held = l->slots[i].code == RLOCK_OK;
        l->granted += l->slots[i].held ? 1 : 0;
    }
}

void rlock_drop_grants(struct rlock *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->slots[i].held = false;
        l->slots[i].code = RLOCK_BUSY;
    }
    l->granted = 0;
    l->token = 0;
    l->released = l->releasing = false;
}

int rlock_prepare(struct rlock *l, const struct rlock_key *keys, size_t n)
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

int rlock_prepare_again(struct rlock *l)
{
    size_t n = l->n;

    rlock_clear(l);
    l->n = n;
    for (size_t i = 0; i < n; i++) {
        l->slots[i] = (struct rlock_slot){0};
        l->slots[i].code = RLOCK_BUSY;
    }
    return rlock_new_nonce(l);
}

/* ---- replicas ---- */

/* WAIT counts what its own connection wrote. */
static bool can_wait(const struct rlock_taking *t)
{
    const struct rlock_node *node = &t->l->client->nodes[0];

    return node->state == RLOCK_UP && node->ends == t->of.vote.round.calls[0].ends;
}

/* WAIT: the lock is released when too few of them have it. */
static void begin_wait(struct rlock_taking *t)
{
    struct rlock_client *c = t->l->client;
    struct rlock_text *out = &c->nodes[0].link.out;
    int64_t until_ms = rlock_least(rlock_now_ms() + c->o.reply_ms, t->limit_ms);

    t->wait = (struct rlock_ask){.c = c};
    rlock_link_begin(&c->nodes[0].link, &t->wait.x, 1);
    rlock_put_command(out, 3);
    rlock_put_word(out, "WAIT");
    rlock_put_number(out, c->o.replicas);
    rlock_put_number(out, rlock_most(c->o.reply_ms / 2, 1));
    rlock_ask_send(&t->wait, until_ms);
}

/* Without an answer the lock is granted, but how many have it is not known. */
static int read_wait(struct rlock_taking *t, int code)
{
    struct rlock_client *c = t->l->client;
    const redisReply *reply = t->wait.x.replies[0];
    int64_t enough = 0;

    if (code != RLOCK_OK)
        code = rlock_fail_by_end(c, &c->nodes[0], RLOCK_E_UNCERTAIN);
    else if (!rlock_reply_number(reply, &enough))
        code = rlock_reply_code(c, &c->nodes[0], reply);
    else if (enough < c->o.replicas)
        code = rlock_fail_as(c, RLOCK_E_NOT_REPLICATED);
    rlock_exchange_clear(&t->wait.x);
    return code;
}

/* ---- the steps ---- */

/* Keys that were taken before a refusal are released; the error text of the refusal
 * stays. */
static bool begin_giving_back(struct rlock_taking *t)
{
    struct rlock *l = t->l;

    if (l->granted > 0 && t->code >= 0 && rlock_now_ms() >= l->deadline_ms)
        t->code = rlock_fail(l->client, RLOCK_E_UNAVAILABLE,
                             "the lease was over before the answer came");
    if (t->code >= 0 || (l->granted == 0 && !l->uncertain))
        return false;
    memcpy(t->words, l->client->error, sizeof t->words);
    l->uncertain = true;
    rlock_give_late(l);
    t->of.giving = (struct rlock_giving){.l = l, .limit_ms = t->limit_ms};
    return true;
}

/* Keys whose release failed may still be held. */
static int end_giving_back(struct rlock_taking *t, int code)
{
    t->l->uncertain = code < 0;
    rlock_drop_grants(t->l);
    return rlock_fail(t->l->client, t->code, "%s", t->words);
}

static void begin_vote(struct rlock_taking *t)
{
    t->l->lease_ms = t->lease_ms;
    t->l->deadline_ms = rlock_deadline(t->lease_ms); /* no command was sent */
    t->of.vote =
        (struct rlock_vote){.l = t->l, .mode = t->mode, .limit_ms = t->limit_ms};
}

static int step(struct rlock_taking *t)
{
    int code;

    switch (t->stage) {
    case RLOCK_TAKING_NODES:
        code = rlock_gather_step(t->l->client, &t->gather);
        if (code != RLOCK_OK)
            return code;
        begin_vote(t);
        t->stage = RLOCK_VOTING;
        return step(t);
    case RLOCK_VOTING:
        t->code = rlock_vote_step(&t->of.vote);
        if (t->code == RLOCK_UNDER_WAY)
            return t->code;
        rlock_note_grants(t->l);
        t->stage = RLOCK_CONCLUDING;
        if (t->l->granted > 0 && t->l->client->o.replicas > 0) {
            t->stage = can_wait(t) ? RLOCK_REPLICATING : RLOCK_CONCLUDING;
            if (t->stage == RLOCK_REPLICATING)
                begin_wait(t);
            else
                t->code = rlock_fail(t->l->client, RLOCK_E_UNCERTAIN,
                                     "the connection ended before replicas confirmed");
        }
        return step(t);
    case RLOCK_REPLICATING:
        code = rlock_ask_step(&t->wait);
        if (code == RLOCK_UNDER_WAY)
            return code;
        code = read_wait(t, code);
        t->code = code == RLOCK_OK ? t->code : code;
        t->stage = RLOCK_CONCLUDING;
        return step(t);
    case RLOCK_CONCLUDING:
        if (!begin_giving_back(t))
            return t->code;
        t->stage = RLOCK_GIVING_BACK;
        return step(t);
    case RLOCK_GIVING_BACK:
        code = rlock_giving_step(&t->of.giving);
        return code == RLOCK_UNDER_WAY ? code : end_giving_back(t, code);
    }
    return t->code;
}

void rlock_taking_begin(struct rlock_taking *t, int64_t limit_ms)
{
    t->limit_ms = limit_ms;
    t->gather = (struct rlock_gather){.is_take = true, .limit_ms = limit_ms};
    t->stage = RLOCK_TAKING_NODES;
    t->l->is_taking = true;
}

int rlock_taking_step(struct rlock_taking *t)
{
    int code = step(t);

    t->l->is_taking = code == RLOCK_UNDER_WAY;
    return code;
}

bool rlock_taking_cancel(struct rlock_taking *t)
{
    if (t->stage != RLOCK_TAKING_NODES && t->stage != RLOCK_VOTING)
        return false;
    if (t->stage == RLOCK_VOTING) {
        rlock_vote_clear(&t->of.vote);
        rlock_tell_release(t->l);
        t->l->uncertain = true;
    }
    rlock_drop_grants(t->l);
    t->l->is_taking = false;
    return true;
}

void rlock_taking_clear(struct rlock_taking *t)
{
    if (t->stage == RLOCK_VOTING)
        rlock_vote_clear(&t->of.vote);
    if (t->stage == RLOCK_GIVING_BACK)
        rlock_giving_clear(&t->of.giving);
    rlock_ask_clear(&t->wait);
    t->l->is_taking = false;
}

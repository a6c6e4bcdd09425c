/* quorum_attempt: the two rounds of an acquire: grants, and the token for those behind.
 */
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/quorum_attempt.h"

struct ll_slot *ll_quorum_slot(const struct ll_quorum_attempt *a, size_t i)
{
    return &a->l->slots[a->first + i];
}

static void put_keys(struct ll_quorum_round *r, const struct ll_quorum_attempt *a)
{
    for (size_t i = a->first; i < a->first + a->n; i++) {
        size_t len;
        const char *name = ll_name(a->l, i, &len);

        ll_quorum_word(r, name, len);
    }
}

static void put_text(struct ll_quorum_round *r, const char *text)
{
    ll_quorum_word(r, text, strlen(text));
}

size_t ll_quorum_grants(const struct ll_quorum_attempt *a, size_t i)
{
    size_t n = 0;

    for (size_t node = 0; node < a->l->client->node_ct; node++)
        n += ll_quorum_slot(a, i)->grants[node] > 0 ? 1 : 0;
    return n;
}

bool ll_quorum_has_majority(const struct ll_quorum_attempt *a, size_t i)
{
    return ll_quorum_grants(a, i) >= ll_quorum_majority(a->l->client);
}

/* ---- grants ---- */

static int fill_grant(struct ll_quorum_round *r, size_t node)
{
    const struct ll_quorum_attempt *a = r->arg;
    const struct ll_node *at = &r->c->nodes[node];
    int64_t node_time_ms = ll_now_ms() + at->server_ahead_ms;

    put_text(r, a->records.node);
    put_text(r, a->records.note);
    put_keys(r, a);
    put_text(r, a->l->nonce);
    ll_quorum_number(r, a->ttl_ms);
    put_text(r, at->ident);
    ll_quorum_number(r, node_time_ms + a->node_ms);
    put_text(r, a->mode == LL_ALL ? "all" : "any");
    ll_quorum_number(r, a->clock_us);
    ll_quorum_number(r, r->c->last_token + 1);
    ll_quorum_number(r, node_time_ms - a->node_ms);
    return (int)a->n + 2;
}

/* The exceptions {..., index, what, index, what}; from is where they begin. */
static bool read_exceptions(struct ll_quorum_attempt *a,
                            size_t node,
                            const redisReply *reply,
                            size_t from)
{
    for (size_t e = from; e + 1 < reply->elements; e += 2) {
        long long index = reply->element[e]->integer;
        const redisReply *what = reply->element[e + 1];
        struct ll_slot *slot;

        if (index < 1 || (size_t)index > a->n)
            return false;
        slot = ll_quorum_slot(a, (size_t)index - 1);
        if (what->type == REDIS_REPLY_STRING) {
            slot->grants[node] = strtoll(what->str, NULL, 10);
            continue;
        }
        slot->grants[node] = LL_BUSY_HERE;
        if (slot->busy_ms != -1 && (what->integer < 0 || what->integer > slot->busy_ms))
            slot->busy_ms = what->integer < 0 ? -1 : what->integer;
    }
    return true;
}

static bool read_vote(struct ll_quorum_attempt *a, size_t node, const redisReply *reply)
{
    const char *head;
    int64_t grant = 0;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0 ||
        reply->element[0]->str == NULL)
        return false;
    head = reply->element[0]->str;
    if (strcmp(head, "amnesia") == 0 && reply->elements == 2) {
        a->amnesic++;
        a->doubted[node] = true;
        a->readmit =
            a->readmit || reply->element[1]->integer >= ll_quorum_wait_ms(a->l->client);
        return true;
    }
    if (strcmp(head, "ok") == 0 && reply->elements >= 2 &&
        reply->element[1]->str != NULL)
        grant = strtoll(reply->element[1]->str, NULL, 10);
    else if (strcmp(head, "busy") != 0)
        return false;
    for (size_t i = 0; i < a->n; i++)
        ll_quorum_slot(a, i)->grants[node] = grant;
    a->voters++;
    return read_exceptions(a, node, reply, grant > 0 ? 2 : 1);
}

int ll_quorum_ask(struct ll_quorum_attempt *a)
{
    struct ll_client *c = a->l->client;
    struct ll_quorum_round r = {.c = c,
                                .script = LUA_QUORUM_ACQUIRE,
                                .node_ms = a->node_ms,
                                .fill = fill_grant,
                                .arg = a,
                                .word_max = a->n + 16};
    int code;

    for (size_t i = 0; i < c->node_ct; i++)
        a->l->asked |= c->nodes[i].conn != NULL ? 1U << i : 0;
    code = ll_quorum_run(&r);
    for (size_t i = 0; i < c->node_ct && code == LL_OK; i++) {
        if (r.replies[i] != NULL && !read_vote(a, i, r.replies[i]))
            code = ll_fail(c, LL_E_PROTO, "the quorum script answered nonsense");
    }
    ll_quorum_done(&r);
    return code;
}

/* ---- write-back ---- */

static int fill_writeback(struct ll_quorum_round *r, size_t node)
{
    const struct ll_quorum_attempt *a = r->arg;
    const struct ll_node *at = &r->c->nodes[node];

    put_text(r, a->records.node);
    put_keys(r, a);
    put_text(r, at->ident);
    ll_quorum_number(r, 0);
    ll_quorum_number(r, a->token);
    put_text(r, a->l->mark);
    for (size_t i = 0; i < a->n; i++) {
        int64_t grant = ll_quorum_slot(a, i)->grants[node];

        ll_quorum_number(r, grant > 0 && grant < a->token ? grant : 0);
    }
    return (int)a->n + 1;
}

static bool is_behind(const struct ll_quorum_attempt *a, size_t node)
{
    for (size_t i = 0; i < a->n; i++) {
        int64_t grant = ll_quorum_slot(a, i)->grants[node];

        if (grant > 0 && grant < a->token && ll_quorum_has_majority(a, i))
            return true;
    }
    return false;
}

int ll_quorum_write_back(struct ll_quorum_attempt *a)
{
    struct ll_client *c = a->l->client;
    struct ll_quorum_round r = {.c = c,
                                .script = LUA_QUORUM_HOLD,
                                .node_ms = a->node_ms,
                                .fill = fill_writeback,
                                .arg = a,
                                .word_max = 2 * a->n + 8};
    int code;

    for (size_t i = 0; i < c->node_ct; i++)
        r.skip[i] = !is_behind(a, i);
    code = ll_quorum_run(&r);
    for (size_t node = 0; node < c->node_ct && code == LL_OK; node++) {
        const redisReply *reply = r.replies[node];

        if (reply == NULL || reply->str == NULL || reply->len != a->n)
            continue;
        for (size_t i = 0; i < a->n; i++)
            ll_quorum_slot(a, i)->acks += reply->str[i] == '1' ? 1 : 0;
    }
    ll_quorum_done(&r);
    return code;
}

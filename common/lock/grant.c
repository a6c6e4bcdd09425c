/* grant: the arguments of the acquire script, and the answer of one server. */
#include <string.h>

#include "common/lock/internal.h"

void ll_fill_take(struct ll_round *r, struct ll_node *node)
{
    static const char *const modes[] = {"all", "any", "one"};
    const struct ll_take *take = r->arg;
    struct ll_text *t = &node->out;

    ll_eval(r, node, take->s->n + 1, 7);
    ll_put_span(t, take->s);
    ll_put(t, take->s->l->nonce, LL_NONCE_HEX);
    ll_put_number(t, take->lease_ms);
    ll_put_window(r, node);
    ll_put_word(t, modes[take->mode]);
    ll_put_number(t, take->floor);
    ll_put_number(t, take->s->l->marks);
}

static int nonsense(struct ll_client *c)
{
    return ll_fail(c, LL_E_PROTO, "the acquire script answered nonsense");
}

/* Marks the busy keys of {..., index, pttl, index, pttl, ...}. */
static bool read_busy(const struct ll_span *s, const redisReply *reply, size_t from)
{
    for (size_t e = from; e < reply->elements; e += 2) {
        int64_t index, left_ms;
        struct ll_slot *slot;

        if (e + 1 == reply->elements || !ll_reply_number(reply->element[e], &index) ||
            !ll_reply_number(reply->element[e + 1], &left_ms) || index < 1 ||
            (size_t)index > s->n)
            return false;
        slot = ll_span_slot(s, (size_t)index - 1);
        slot->code = LL_BUSY;
        if (left_ms != -2) /* else the key is free and was not taken */
            slot->busy_ms = left_ms == 0 ? 1 : left_ms;
    }
    return true;
}

static int
read_grant(struct ll_client *c, const struct ll_take *take, const redisReply *reply)
{
    int64_t token = reply->elements < 2 ? 0 : ll_reply_token(reply->element[1]);
    const struct ll_span *s = take->s;
    size_t granted = 0;

    for (size_t i = 0; i < s->n; i++)
        ll_span_slot(s, i)->code = LL_OK;
    if (token == 0 || !read_busy(s, reply, 2))
        return nonsense(c);
    for (size_t i = 0; i < s->n; i++) {
        bool is_granted = ll_span_slot(s, i)->code == LL_OK;

        ll_span_slot(s, i)->token = is_granted ? token : 0;
        granted += is_granted ? 1 : 0;
    }
    if (granted == s->n)
        return LL_OK;
    return granted > 0 && take->mode == LL_ANY ? LL_PARTIAL : nonsense(c);
}

static int
read_one(struct ll_client *c, const struct ll_span *s, const redisReply *reply)
{
    int64_t index = 0;
    int64_t token = reply->elements == 3 ? ll_reply_token(reply->element[1]) : 0;

    if (token == 0 || !ll_reply_number(reply->element[2], &index) || index < 1 ||
        (size_t)index > s->n)
        return nonsense(c);
    ll_span_slot(s, (size_t)index - 1)->code = LL_OK;
    ll_span_slot(s, (size_t)index - 1)->token = token;
    return LL_OK;
}

int ll_read_take(struct ll_client *c,
                 const struct ll_take *take,
                 const redisReply *reply)
{
    const struct ll_span *s = take->s;
    const char *head;
    int code;

    for (size_t i = 0; i < s->n; i++) {
        ll_span_slot(s, i)->code = LL_BUSY;
        ll_span_slot(s, i)->token = 0;
    }
    if (reply->type == REDIS_REPLY_ERROR)
        return ll_reply_code(c, &c->nodes[0], reply);
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0 ||
        reply->element[0]->type != REDIS_REPLY_STRING)
        return nonsense(c);
    head = reply->element[0]->str;
    if (strcmp(head, "ok") == 0 && take->mode != LL_ONE)
        code = read_grant(c, take, reply);
    else if (strcmp(head, "one") == 0 && take->mode == LL_ONE)
        code = read_one(c, s, reply);
    else
        code =
            strcmp(head, "busy") == 0 && read_busy(s, reply, 1) ? LL_BUSY : nonsense(c);
    for (size_t i = 0; code < 0 && i < s->n; i++)
        ll_span_slot(s, i)->code = LL_BUSY;
    return code;
}

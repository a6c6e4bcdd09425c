/* grant: the words of the acquire script: its arguments, and the answer of one server.
 */
#include <stdio.h>
#include <string.h>

#include "common/lock/internal.h"

void rlock_fill_take(struct rlock_round *r, struct rlock_node *node)
{
    const struct rlock_take *take = r->arg;
    const struct rlock *l = take->s->l;
    struct rlock_text *t = &node->link.out;
    char end[RLOCK_TEXT_MAX + 8];

    rlock_eval(r, node, take->s->n + 1, 8);
    rlock_put_word(t, r->c->last_key);
    rlock_put_span(t, take->s);
    rlock_put(t, l->nonce, RLOCK_NONCE_HEX);
    rlock_put_number(t, take->lease_ms);
    rlock_put_window(r, node);
    if (take->mode >= RLOCK_ONE)
        rlock_put_number(t, (int64_t)rlock_wanted(take->mode));
    else
        rlock_put_word(t, take->mode == RLOCK_ALL ? "all" : "any");
    rlock_put_number(t, take->floor);
    rlock_put_number(t, l->marks);
    if (l->is_heir) {
        (void)snprintf(end, sizeof end, "%s|w", rlock_text_of(l));
        rlock_put_word(t, end);
    } else {
        rlock_put_word(t, rlock_text_of(l));
    }
}

static void set_codes(const struct rlock_span *s, int code)
{
    for (size_t i = 0; i < s->n; i++)
        rlock_span_slot(s, i)->code = code;
}

/* The slot of an index, counted from 1; NULL: it is none. */
static struct rlock_slot *slot_at(const struct rlock_span *s, const redisReply *index)
{
    int64_t i;

    if (!rlock_reply_number(index, &i) || i < 1 || (size_t)i > s->n)
        return NULL;
    return rlock_span_slot(s, (size_t)i - 1);
}

/* Marks the busy keys of {..., index, pttl, index, pttl, ...}. */
static bool read_busy(const struct rlock_span *s, const redisReply *reply, size_t from)
{
    for (size_t e = from; e < reply->elements; e += 2) {
        struct rlock_slot *slot = slot_at(s, reply->element[e]);
        int64_t left_ms;

        if (slot == NULL || e + 1 == reply->elements ||
            !rlock_reply_number(reply->element[e + 1], &left_ms))
            return false;
        slot->code = RLOCK_BUSY;
        if (left_ms != -2) /* else the key is free and was not taken */
            slot->busy_ms = left_ms == 0 ? 1 : left_ms;
    }
    return true;
}

/* Marks the granted keys of {"some", token, index, ...}. */
static bool read_some(const struct rlock_take *take, const redisReply *reply)
{
    size_t granted = 0;

    for (size_t e = 2; e < reply->elements; e++) {
        struct rlock_slot *slot = slot_at(take->s, reply->element[e]);

        if (slot == NULL || slot->code == RLOCK_OK)
            return false;
        slot->code = RLOCK_OK;
        granted++;
    }
    return granted == rlock_wanted(take->mode);
}

/* Code of a valid answer, else RLOCK_E_PROTO. */
static int
read_kind(const struct rlock_take *take, const char *kind, const redisReply *reply)
{
    const struct rlock_span *s = take->s;
    bool is_some = take->mode >= RLOCK_ONE, is_valid;
    size_t granted = 0;

    set_codes(s, strcmp(kind, "ok") == 0 ? RLOCK_OK : RLOCK_BUSY);
    if (strcmp(kind, "busy") == 0)
        return read_busy(s, reply, 1) ? RLOCK_BUSY : RLOCK_E_PROTO;
    is_valid = strcmp(kind, is_some ? "some" : "ok") == 0 &&
               (is_some ? read_some(take, reply) : read_busy(s, reply, 2));
    if (take->token == 0 || !is_valid)
        return RLOCK_E_PROTO;
    for (size_t i = 0; i < s->n; i++)
        granted += rlock_span_slot(s, i)->code == RLOCK_OK ? 1 : 0;
    if (is_some || granted == s->n)
        return RLOCK_OK;
    return granted > 0 && take->mode == RLOCK_ANY ? RLOCK_PARTIAL : RLOCK_E_PROTO;
}

int rlock_read_take(struct rlock_client *c,
                    struct rlock_node *node,
                    struct rlock_take *take,
                    const redisReply *reply)
{
    const char *kind = "";
    int code;

    if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
        reply->element[0]->type == REDIS_REPLY_STRING)
        kind = reply->element[0]->str;
    take->token = strcmp(kind, "busy") != 0 && kind[0] != '\0' && reply->elements > 1
                      ? rlock_reply_token(reply->element[1])
                      : 0;
    code = read_kind(take, kind, reply);
    if (code >= 0)
        return code;
    set_codes(take->s, RLOCK_BUSY);
    take->token = 0;
    return reply->type == REDIS_REPLY_ERROR
               ? rlock_reply_code(c, node, reply)
               : rlock_fail_at(c, node, code, ": the acquire script answered nonsense");
}

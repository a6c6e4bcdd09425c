/* held: a key of a server as it is told to people: who holds it, and for how long. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/operation.h"

/* The answer of rlock_look; the name and the value stand behind it. */
struct looked {
    struct rlock_described d;
    char bytes[];
};

/* ---- a value: nonce|token, then maybe |=text, then maybe |w ---- */

/* Without the mark of waiters. */
static size_t unmarked(const char *value, size_t len)
{
    return len > 2 && memcmp(value + len - 2, "|w", 2) == 0 ? len - 2 : len;
}

/* The place of the text; len: there is none. */
static size_t text_at(const char *value, size_t len)
{
    const char *bar = len > RLOCK_NONCE_HEX + 1 ? memchr(value + RLOCK_NONCE_HEX + 1,
                                                         '|', len - RLOCK_NONCE_HEX - 1)
                                                : NULL;
    size_t at = bar != NULL ? (size_t)(bar - value) : len;

    return at + 2 <= len && value[at + 1] == '=' ? at + 2 : len;
}

int64_t rlock_token_of(const char *value, size_t value_len)
{
    size_t len = unmarked(value, value_len), text = text_at(value, len);
    redisReply digits = {.type = REDIS_REPLY_STRING};

    if (text < len)
        len = text - 2;
    if (len <= RLOCK_NONCE_HEX + 1 || value[RLOCK_NONCE_HEX] != '|' ||
        strspn(value, "0123456789abcdef") != RLOCK_NONCE_HEX)
        return 0;
    digits.str = (char *)(uintptr_t)value + RLOCK_NONCE_HEX + 1; /* it is only read */
    digits.len = len - RLOCK_NONCE_HEX - 1;
    return rlock_reply_token(&digits);
}

static void copy_printable(char *to, const char *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
    to[n] = '\0';
}

static void describe_value(struct rlock_described *d, const redisReply *value)
{
    struct rlock_held *held = &d->held;
    size_t len = unmarked(value->str, value->len), text = text_at(value->str, len);
    size_t most, n;

    held->value = value->str;
    held->value_len = value->len;
    held->token = rlock_token_of(value->str, value->len);
    most = held->token > 0 ? RLOCK_NONCE_HEX : sizeof d->holder - 4;
    n = value->len < most ? value->len : most;
    copy_printable(d->holder, value->str, n);
    if (held->token == 0 && value->len > n)
        (void)strcpy(d->holder + n, "...");
    if (held->token > 0 && len - text < sizeof d->text) {
        memcpy(d->text, value->str + text, len - text);
        d->text[len - text] = '\0';
    }
}

bool rlock_describe(struct rlock_described *d, redisReply *const *answer)
{
    const redisReply *value = answer[0];

    *d = (struct rlock_described){.holder = "(not a string)"};
    d->held.holder = d->holder;
    d->held.text = d->text;
    if (!rlock_reply_number(answer[1], &d->held.left_ms) || d->held.left_ms == -2)
        return false;
    if (value->type == REDIS_REPLY_STRING)
        describe_value(d, value);
    return true;
}

/* ---- look ---- */

static void fill(struct rlock_round *r, struct rlock_node *node)
{
    rlock_eval(r, node, 1, 0);
    rlock_put_name(&node->link.out, r->arg, 0);
}

/* The key on a node: false: no answer, or nobody holds it there. */
static bool describe(const struct rlock_round *r, size_t i, struct rlock_described *d)
{
    const redisReply *reply = rlock_answer(r, i);

    return reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
           rlock_describe(d, reply->element);
}

static bool is_same(const struct rlock_held *a, const struct rlock_held *b)
{
    if (a->token > 0 && b->token > 0)
        return memcmp(a->value, b->value, RLOCK_NONCE_HEX) == 0;
    return a->value_len == b->value_len &&
           (a->value_len == 0 || memcmp(a->value, b->value, a->value_len) == 0);
}

/* The holder that a majority of the nodes has, with the shortest of its times. Returns
 * on how many nodes it is, or, if none has a majority, the most that any has. */
static size_t find_holder(const struct rlock_round *r, struct rlock_described *found)
{
    size_t most = 0;

    for (size_t i = 0; i < r->c->node_ct; i++) {
        struct rlock_described other;
        size_t nodes = 0;
        int64_t least_ms = INT64_MAX;

        if (!describe(r, i, found))
            continue;
        for (size_t j = 0; j < r->c->node_ct; j++) {
            if (!describe(r, j, &other) || !is_same(&found->held, &other.held))
                continue;
            nodes++;
            if (other.held.left_ms >= 0)
                least_ms = rlock_least(least_ms, other.held.left_ms);
        }
        found->held.left_ms = least_ms < INT64_MAX ? least_ms : -1;
        most = nodes > most ? nodes : most;
        if (nodes >= rlock_majority(r->c))
            return nodes;
    }
    return most;
}

static int keep_looked(struct rlock_client *c,
                       const char *name,
                       const struct rlock_described *found,
                       struct rlock_held *held)
{
    size_t len = strlen(name), value_len = found->held.value_len;
    struct looked *looked = malloc(sizeof *looked + len + 1 + value_len);

    if (looked == NULL)
        return rlock_fail_as(c, RLOCK_E_NOMEM);
    looked->d = *found;
    *held = found->held;
    held->holder = looked->d.holder;
    held->text = looked->d.text;
    held->name = memcpy(looked->bytes, name, len + 1);
    held->len = len;
    if (held->value != NULL)
        held->value = memcpy(looked->bytes + len + 1, held->value, value_len);
    free(c->looked);
    c->looked = looked;
    return RLOCK_OK;
}

static int look(struct rlock *l, const char *name, struct rlock_held *held)
{
    struct rlock_client *c = l->client;
    int64_t limit_ms = rlock_call_end(c);
    struct rlock_round r = rlock_round_of(c, l, LUA_LIST, limit_ms, fill, l);
    struct rlock_described found;
    size_t answers = 0, nodes;
    int code = rlock_gather(c, true, limit_ms);

    if (code != RLOCK_OK)
        return code;
    rlock_round_run(&r);
    for (size_t i = 0; i < c->node_ct; i++)
        answers += rlock_answer(&r, i) != NULL &&
                           rlock_answer(&r, i)->type == REDIS_REPLY_ARRAY
                       ? 1
                       : 0;
    nodes = find_holder(&r, &found);
    if (nodes >= rlock_majority(c))
        code = keep_looked(c, name, &found, held);
    else if (answers < rlock_majority(c) ||
             nodes + c->node_ct - answers >= rlock_majority(c))
        code = rlock_too_few(&r); /* those that are silent may make it a majority */
    else
        code = rlock_fail(c, RLOCK_GONE, "nobody holds it");
    rlock_round_clear(&r);
    return code == RLOCK_E_UNCERTAIN ? RLOCK_E_UNAVAILABLE : code; /* only read */
}

int rlock_look(struct rlock_client *c, const char *name, struct rlock_held *held)
{
    struct rlock_key key = {name, strlen(name)};
    struct rlock *l;
    int code = rlock_check_owner(c);

    *held = (struct rlock_held){.left_ms = -1};
    if (code != RLOCK_OK)
        return code;
    l = rlock_new(c);
    if (l == NULL)
        return rlock_fail_as(c, RLOCK_E_NOMEM);
    code = rlock_store_names(l, &key, 1);
    if (code == RLOCK_OK)
        code = look(l, name, held);
    rlock_free_memory(l);
    return code;
}

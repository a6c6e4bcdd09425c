/* list: the locks on a server with their holders. */
#include <stdio.h>
#include <string.h>

#include "common/lock/internal.h"

enum { PATTERN = 2 * RLOCK_PREFIX_MAX + 2, HOLDER = 48 };

/* A step of a scan of one node. */
struct step {
    char cursor[24], pattern[PATTERN];
};

static void fill(struct rlock_round *r, struct rlock_node *node)
{
    const struct step *step = r->arg;

    rlock_eval(r, node, 1, 2);
    rlock_put_word(&node->link.out, r->c->last_key);
    rlock_put_word(&node->link.out, step->cursor);
    rlock_put_word(&node->link.out, step->pattern);
}

/* ---- one key ---- */

/* Leaves out a key that has gone since; reports one of another type. */
static void
tell(const struct rlock_client *c, redisReply *const *key, rlock_held_fn fn, void *arg)
{
    char holder[HOLDER] = "(not a string)";
    struct rlock_held held = {.name = key[0]->str + c->prefix_len,
                              .len = key[0]->len - c->prefix_len,
                              .holder = holder};
    const redisReply *value = key[1];

    if (!rlock_reply_number(key[2], &held.left_ms) || held.left_ms == -2)
        return;
    if (value->type == REDIS_REPLY_STRING) {
        size_t most, n;

        held.value = value->str;
        held.value_len = value->len;
        held.token = rlock_value_token(value->str, value->len);
        most = held.token > 0 ? RLOCK_NONCE_HEX : HOLDER - 4;
        n = value->len < most ? value->len : most;
        for (size_t i = 0; i < n; i++)
            holder[i] =
                value->str[i] >= ' ' && value->str[i] <= '~' ? value->str[i] : '?';
        (void)strcpy(holder + n, held.token == 0 && value->len > n ? "..." : "");
    }
    fn(&held, arg);
}

/* ---- one node ---- */

/* Reports the keys that the step found, and takes its cursor. */
static int read_step(struct rlock_client *c,
                     struct rlock_node *node,
                     const redisReply *reply,
                     struct step *step,
                     rlock_held_fn fn,
                     void *arg)
{
    if (reply->type == REDIS_REPLY_ERROR)
        return rlock_reply_code(c, node, reply);
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements % 3 != 1 ||
        reply->element[0]->type != REDIS_REPLY_STRING ||
        reply->element[0]->len >= sizeof step->cursor)
        return rlock_fail(c, RLOCK_E_PROTO, "the list script answered nonsense");
    (void)strcpy(step->cursor, reply->element[0]->str);
    for (size_t i = 1; i < reply->elements; i += 3) {
        const redisReply *name = reply->element[i];

        if (name->type == REDIS_REPLY_STRING && name->len > c->prefix_len &&
            memcmp(name->str, c->prefix, c->prefix_len) == 0 &&
            name->str[c->prefix_len] != '!')
            tell(c, reply->element + i, fn, arg);
    }
    return RLOCK_OK;
}

static int list_node(struct rlock_client *c, size_t i, rlock_held_fn fn, void *arg)
{
    struct step step = {.cursor = "0"};
    size_t at = 0;
    int code;

    for (const char *p = c->prefix; *p != '\0'; p++) { /* with any value */
        if (strchr("*?[]\\^-", *p) != NULL)
            step.pattern[at++] = '\\';
        step.pattern[at++] = *p;
    }
    step.pattern[at] = '*';
    do {
        struct rlock_round r = {.c = c,
                                .script = LUA_LIST,
                                .allowed = 1U << i,
                                .node_ms = c->o.connect_ms,
                                .limit_ms = rlock_call_end(c), /* of this step alone */
                                .fill = fill,
                                .arg = &step};

        code = rlock_gather(c, false, r.limit_ms);
        if (code != RLOCK_OK)
            return code;
        rlock_round_run(&r);
        code = r.calls[i].code;
        if (code == RLOCK_OK)
            code = read_step(c, &c->nodes[i], rlock_answer(&r, i), &step, fn, arg);
        rlock_round_clear(&r);
    } while (code == RLOCK_OK && strcmp(step.cursor, "0") != 0);
    return code == RLOCK_E_UNCERTAIN ? RLOCK_E_UNAVAILABLE
                                     : code; /* nothing was changed */
}

int rlock_list(struct rlock_client *c, rlock_held_fn fn, void *arg)
{
    size_t listed = 0;
    int code = rlock_check_owner(c);

    if (code == RLOCK_OK)
        code = rlock_gather(c, false, rlock_call_end(c));
    if (code != RLOCK_OK)
        return code;
    for (size_t i = 0; i < c->node_ct; i++) {
        int one = rlock_has(rlock_ready_nodes(c), i) ? list_node(c, i, fn, arg)
                                                     : RLOCK_E_UNAVAILABLE;

        listed += one == RLOCK_OK ? 1 : 0;
        code = one != RLOCK_OK ? one : code;
    }
    return listed >= rlock_majority(c) ? RLOCK_OK : code;
}

/* operators: the locks on a server with their holders; releases of others' locks. */
#include <stdio.h>
#include <string.h>

#include "common/lock/operation.h"

enum { PATTERN = 2 * RLOCK_PREFIX_MAX + 2 };

/* A step of a scan of one node: SCAN, and a script for the keys that it found. */
struct step {
    struct rlock_client *c;
    size_t node;
    char cursor[24], pattern[PATTERN];
    const redisReply *found; /* an array */
};

/* ---- one step ---- */

/* Leaves out a key that has gone since; reports one of another type. answer: its value,
 * and the time that it has left. */
static void tell(const struct rlock_client *c,
                 const redisReply *name,
                 redisReply *const *answer,
                 rlock_held_fn fn,
                 void *arg)
{
    struct rlock_described d;

    if (!rlock_describe(&d, answer))
        return;
    d.held.name = name->str + c->prefix_len;
    d.held.len = name->len - c->prefix_len;
    fn(&d.held, arg);
}

static int nonsense(struct step *step)
{
    return rlock_fail_at(step->c, &step->c->nodes[step->node], RLOCK_E_PROTO,
                         ": SCAN, or the list script, answered nonsense");
}

/* A lock of the prefix, not a key of the library. */
static bool is_lock(const struct rlock_client *c, const redisReply *name)
{
    return name->type == REDIS_REPLY_STRING && name->len > c->prefix_len &&
           memcmp(name->str, c->prefix, c->prefix_len) == 0 &&
           name->str[c->prefix_len] != '!';
}

/* The next lock from i on. */
static size_t next_lock(const struct step *step, size_t i)
{
    while (i < step->found->elements && !is_lock(step->c, step->found->element[i]))
        i++;
    return i;
}

static size_t count_locks(const struct step *step)
{
    size_t n = 0;

    for (size_t i = next_lock(step, 0); i < step->found->elements;
         i = next_lock(step, i + 1))
        n++;
    return n;
}

static void fill(struct rlock_round *r, struct rlock_node *node)
{
    const struct step *step = r->arg;

    rlock_eval(r, node, count_locks(step), 0);
    for (size_t i = next_lock(step, 0); i < step->found->elements;
         i = next_lock(step, i + 1))
        rlock_put(&node->link.out, step->found->element[i]->str,
                  step->found->element[i]->len);
}

/* Reports the locks that SCAN has found. */
static int tell_found(struct step *step, rlock_held_fn fn, void *arg)
{
    struct rlock_client *c = step->c;
    struct rlock_round r = {.c = c,
                            .script = LUA_LIST,
                            .allowed = 1U << step->node,
                            .node_ms = c->o.connect_ms,
                            .limit_ms = rlock_call_end(c), /* of this step alone */
                            .fill = fill,
                            .arg = step};
    const redisReply *reply;
    size_t n = count_locks(step), e = 0;
    int code;

    if (n == 0)
        return RLOCK_OK;
    rlock_round_run(&r);
    code = r.calls[step->node].code;
    reply = rlock_answer(&r, step->node);
    if (code == RLOCK_OK && reply->type == REDIS_REPLY_ERROR)
        code = rlock_reply_code(c, &c->nodes[step->node], reply);
    else if (code == RLOCK_OK &&
             (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 * n))
        code = nonsense(step);
    for (size_t i = next_lock(step, 0); code == RLOCK_OK && i < step->found->elements;
         i = next_lock(step, i + 1), e += 2)
        tell(c, step->found->element[i], reply->element + e, fn, arg);
    rlock_round_clear(&r);
    return code;
}

/* A replica is out of date. */
static int check_role(struct step *step, const redisReply *info)
{
    struct rlock_client *c = step->c;
    struct rlock_node *node = &c->nodes[step->node];

    if (info->type != REDIS_REPLY_STRING)
        return rlock_reply_code(c, node, info);
    if (strstr(info->str, "role:slave") == NULL)
        return RLOCK_OK;
    node->is_stale = true;
    return rlock_fail_at(c, node, RLOCK_E_READONLY,
                         " is a replica now, and its locks are out of date");
}

static int
read_step(struct step *step, redisReply *const *replies, rlock_held_fn fn, void *arg)
{
    const redisReply *scan = replies[1];
    int code = check_role(step, replies[0]);

    if (code == RLOCK_OK && scan->type == REDIS_REPLY_ERROR)
        code = rlock_reply_code(step->c, &step->c->nodes[step->node], scan);
    if (code != RLOCK_OK)
        return code;
    if (scan->type != REDIS_REPLY_ARRAY || scan->elements != 2 ||
        scan->element[0]->type != REDIS_REPLY_STRING ||
        scan->element[0]->len >= sizeof step->cursor ||
        scan->element[1]->type != REDIS_REPLY_ARRAY)
        return nonsense(step);
    (void)strcpy(step->cursor, scan->element[0]->str);
    step->found = scan->element[1];
    return tell_found(step, fn, arg);
}

/* The slot of a cluster may be elsewhere: the last token is where most of its keys are.
 */
static void put_questions(const struct step *step, struct rlock_ask *ask)
{
    struct rlock_node *node = &step->c->nodes[step->node];
    struct rlock_text *t = &node->link.out;

    rlock_link_begin(&node->link, &ask->x, node->is_asking ? 4 : 3);
    if (node->is_asking)
        rlock_put_words(t, (const char *[]){"ASKING", NULL});
    rlock_put_words(t, (const char *[]){"GET", step->c->last_key, NULL});
    rlock_put_words(t, (const char *[]){"INFO", "replication", NULL});
    rlock_put_words(t, (const char *[]){"SCAN", step->cursor, "MATCH", step->pattern,
                                        "COUNT", "200", NULL});
}

/* RLOCK_BUSY: elsewhere. */
static int try_step(struct step *step, int64_t limit_ms, rlock_held_fn fn, void *arg)
{
    struct rlock_client *c = step->c;
    struct rlock_node *node = &c->nodes[step->node];
    struct rlock_ask ask = {.c = c, .node = step->node};
    int code = rlock_gather(c, false, limit_ms);
    redisReply *const *replies;

    if (code == RLOCK_OK && !rlock_node_is_ready(node))
        code = rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE, ": the node is not ready");
    if (code != RLOCK_OK)
        return code;
    put_questions(step, &ask);
    code = rlock_ask(&ask, limit_ms) == NULL ? ask.x.code : RLOCK_OK;
    replies = ask.x.replies + ask.x.wanted - 3;
    if (code == RLOCK_OK && c->node_ct == 1 && replies[0]->type == REDIS_REPLY_ERROR &&
        rlock_place_follow(c, node, replies[0]->str))
        code = RLOCK_BUSY;
    else if (code == RLOCK_OK)
        code = read_step(step, replies + 1, fn, arg);
    rlock_exchange_clear(&ask.x);
    return code;
}

/* The next step begins at the slot's owner again. */
static int make_step(struct step *step, rlock_held_fn fn, void *arg)
{
    struct rlock_node *node = &step->c->nodes[step->node];
    int64_t limit_ms = rlock_call_end(step->c);
    int code, tries = 0;

    do { /* a connection may have ended while it rested */
        code = try_step(step, limit_ms, fn, arg);
    } while (code == RLOCK_BUSY ||
             ((code == RLOCK_E_UNCERTAIN || code == RLOCK_E_UNAVAILABLE) &&
              tries++ == 0 && rlock_now_ms() < limit_ms));
    if (node->is_asking) {
        node->is_asking = false;
        rlock_node_close(node);
        rlock_next_seed(step->c);
    }
    return code;
}

/* ---- one node ---- */

static int list_node(struct rlock_client *c, size_t i, rlock_held_fn fn, void *arg)
{
    struct step step = {.c = c, .node = i, .cursor = "0"};
    size_t at = 0;
    int code;

    for (const char *p = c->prefix; *p != '\0'; p++) { /* with any value */
        if (strchr("*?[]\\^-", *p) != NULL)
            step.pattern[at++] = '\\';
        step.pattern[at++] = *p;
    }
    step.pattern[at] = '*';
    do {
        code = make_step(&step, fn, arg);
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

/* ---- releases ---- */

/* Releases as if the lock were ours. *freed: number of keys deleted. */
static int
give_as(struct rlock *l, const struct rlock_key *keys, size_t n, size_t *freed)
{
    struct rlock_giving g = {.l = l, .limit_ms = rlock_call_end(l->client)};
    int code = rlock_store_names(l, keys, n);

    if (code == RLOCK_OK) {
        l->uncertain = true; /* all its keys that may be held */
        code = rlock_drive(l->client, rlock_giving_step, &g);
    }
    for (size_t i = 0; code >= 0 && i < n; i++)
        *freed += l->slots[i].code == RLOCK_OK ? 1 : 0;
    return code;
}

int rlock_release_dead(struct rlock_client *c,
                       const char *nonce,
                       const struct rlock_key *keys,
                       size_t n,
                       size_t *freed)
{
    int code = rlock_check_owner(c);
    struct rlock *l;

    *freed = 0;
    if (code != RLOCK_OK)
        return code;
    if (strspn(nonce, "0123456789abcdef") != RLOCK_NONCE_HEX ||
        nonce[RLOCK_NONCE_HEX] != '\0')
        return rlock_fail(c, RLOCK_E_INVAL, "a nonce is %d hexadecimal digits",
                          RLOCK_NONCE_HEX);
    l = rlock_new(c);
    if (l == NULL)
        return rlock_fail_as(c, RLOCK_E_NOMEM);
    (void)snprintf(l->mark, sizeof l->mark, "%s|", nonce);
    code = give_as(l, keys, n, freed);
    rlock_free_memory(l);
    return code < 0 ? code : RLOCK_OK;
}

int rlock_force_release(struct rlock_client *c,
                        const struct rlock_key *key,
                        const char *value,
                        size_t value_len)
{
    size_t freed = 0;
    int code = rlock_check_owner(c);
    struct rlock *l;

    if (code != RLOCK_OK)
        return code;
    l = rlock_new(c);
    if (l == NULL)
        return rlock_fail_as(c, RLOCK_E_NOMEM);
    l->is_forced = true;
    l->seen = value != NULL ? value : "";
    l->seen_len = value != NULL ? value_len : 0;
    if (value != NULL && rlock_token_of(value, value_len) > 0) { /* of all nodes */
        l->seen = NULL;
        (void)memcpy(l->mark, value, RLOCK_NONCE_HEX + 1);
    }
    code = give_as(l, key, 1, &freed);
    rlock_free_memory(l);
    return code;
}

/* round: runs one script by its hash on all nodes at once; asks a node again where it
 * did not run, or where its answer was lost. And the words of the acquire script. */
#include <stdlib.h>
#include <string.h>

#include "common/lock/internal.h"

/* Enough for one node: script unknown, then clock moved, then connection lost. */
enum { TRIES_MAX = 4 };

/* A node that reads so slowly gets no further command. */
enum { LEFT_BYTES_MAX = 1 << 20 };

void rlock_eval(struct rlock_round *r,
                struct rlock_node *node,
                size_t keys,
                size_t args)
{
    struct rlock_text *t = &node->out;
    bool is_whole = rlock_has(r->whole, (size_t)(node - r->c->nodes));
    const struct lua_text *script = &lua_texts[r->script];

    r->keys = keys - 1; /* beside the last token's */
    if (node->is_asking)
        rlock_put_words(t, (const char *[]){"ASKING", NULL});
    rlock_put_command(t, 3 + keys + args);
    rlock_put_word(t, is_whole ? "EVAL" : "EVALSHA");
    rlock_put_word(t, is_whole ? (const char *)script->text : script->sha1);
    rlock_put_number(t, (int64_t)keys);
}

/* A command that reaches the server after our wait has ended must change nothing. The
 * lower bound catches a server clock that was set back since it was compared, with
 * which a late command would look on time. */
void rlock_put_window(struct rlock_round *r, struct rlock_node *node)
{
    int64_t now_ms = rlock_now_ms();
    int64_t left_ms = rlock_reply_deadline(r->c, r->node_ms) - now_ms;

    rlock_put_number(&node->out, now_ms + node->server_ahead_ms - r->node_ms);
    rlock_put_number(&node->out, now_ms + node->server_ahead_ms + left_ms);
}

struct rlock_round rlock_round_of(struct rlock_client *c,
                                  const struct rlock_lock *l,
                                  enum lua_id script,
                                  void (*fill)(struct rlock_round *r,
                                               struct rlock_node *node),
                                  const void *arg)
{
    return (struct rlock_round){.c = c,
                                .script = script,
                                .allowed = RLOCK_ALL_NODES,
                                .node_ms = rlock_node_ms(c, l->lease_ms),
                                .fill = fill,
                                .arg = arg};
}

/* Also to a node that owes answers; those come first. */
static bool may_be_told(const struct rlock_node *node)
{
    return node->state == RLOCK_UP &&
           (node->sent == node->out.size || node->out.size <= LEFT_BYTES_MAX);
}

/* ---- one try ---- */

/* Tells from the answer of a node if it must be asked again; RLOCK_OK: no. */
static int read_answer(struct rlock_round *r, size_t i)
{
    struct rlock_client *c = r->c;
    struct rlock_node *node = &c->nodes[i];
    const redisReply *reply;

    if (node->is_asking) { /* the answer to ASKING is not used */
        freeReplyObject(node->replies[0]);
        node->replies[0] = node->replies[1];
        node->reply_ct = 1;
    }
    reply = node->replies[0];
    if (rlock_is_error(reply, "NOSCRIPT")) {
        r->whole |= 1U << i;
        return RLOCK_E_UNAVAILABLE;
    }
    if (reply->type == REDIS_REPLY_ERROR && c->node_ct == 1 &&
        rlock_place_follow(c, node, reply->str))
        return rlock_fail(c, RLOCK_E_UNAVAILABLE, "the slot of the locks has moved");
    if (!rlock_is_late(reply))
        return RLOCK_OK;
    node->check_at_ms = 1; /* the clocks have diverged: compare them again */
    return rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE,
                         " ran the command after its time");
}

static void try_once(struct rlock_round *r, unsigned who)
{
    struct rlock_client *c = r->c;

    for (size_t i = 0; (i = rlock_next(c, who, i)) < c->node_ct; i++) {
        rlock_talk_begin(&c->nodes[i], c->nodes[i].is_asking ? 2 : 1);
        r->fill(r, &c->nodes[i]);
    }
    rlock_talk(c, who, rlock_reply_deadline(c, r->node_ms), r->enough, r);
    for (size_t i = 0; (i = rlock_next(c, who, i)) < c->node_ct; i++) {
        struct rlock_node *node = &c->nodes[i];

        r->codes[i] = node->code == RLOCK_OK ? read_answer(r, i) : node->code;
        if (r->codes[i] == RLOCK_OK)
            r->answered |= 1U << i;
        else if (r->codes[i] == RLOCK_E_UNCERTAIN)
            r->unanswered |= 1U << i;
    }
}

void rlock_round_tell(struct rlock_round *r, unsigned who)
{
    struct rlock_client *c = r->c;

    r->whole |= who; /* nobody would read NOSCRIPT */
    for (size_t i = 0; (i = rlock_next(c, who, i)) < c->node_ct; i++) {
        if (!may_be_told(&c->nodes[i]))
            continue;
        rlock_talk_begin(&c->nodes[i], 1);
        r->fill(r, &c->nodes[i]);
        rlock_talk_tell(c, &c->nodes[i]);
    }
}

/* ---- all tries ---- */

/* A single server is asked again after any failure; a node of a quorum only if it did
 * not know the script. */
static unsigned whom_again(const struct rlock_round *r, unsigned who)
{
    unsigned again = 0;

    for (size_t i = 0; (i = rlock_next(r->c, who, i)) < r->c->node_ct; i++) {
        int code = r->codes[i];

        if (code == RLOCK_OK || code == RLOCK_E_NOMEM)
            continue;
        if (r->c->node_ct == 1 ||
            (code == RLOCK_E_UNAVAILABLE && may_be_told(&r->c->nodes[i]) &&
             rlock_has(r->whole, i)))
            again |= 1U << i;
    }
    return again;
}

void rlock_round_run(struct rlock_round *r)
{
    struct rlock_client *c = r->c;
    unsigned who = 0;
    int code = RLOCK_OK;

    for (size_t i = 0; i < c->node_ct; i++) {
        who |= may_be_told(&c->nodes[i]) ? r->allowed & 1U << i : 0;
        r->codes[i] = RLOCK_E_UNAVAILABLE; /* of a node that is not asked */
    }
    r->who = who;
    for (int tries = 0; who != 0 && tries < TRIES_MAX; tries++) {
        if (tries > 0 && c->node_ct == 1) /* the answers of a quorum are still needed */
            code = rlock_gather(c, false);
        if (tries > 0 && (code != RLOCK_OK || rlock_now_ms() >= c->limit_ms))
            break;
        try_once(r, who);
        who = whom_again(r, who);
    }
    if (c->nodes[0].is_asking) { /* the next command begins at the slot's owner again */
        c->nodes[0].is_asking = false;
        rlock_node_close(&c->nodes[0]);
        rlock_next_seed(c);
    }
    if (c->node_ct == 1 && code != RLOCK_OK) /* no further try was possible */
        r->codes[0] = code;
    if (c->node_ct == 1 && r->codes[0] == RLOCK_E_UNAVAILABLE && r->unanswered != 0)
        r->codes[0] = RLOCK_E_UNCERTAIN;
}

/* ---- answers ---- */

const char *rlock_said(const struct rlock_round *r, size_t i)
{
    const struct rlock_node *node = &r->c->nodes[i];
    const redisReply *reply;

    if (!rlock_has(r->who, i) || node->code != RLOCK_OK || node->reply_ct == 0)
        return NULL;
    reply = node->replies[0];
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0)
        reply = reply->element[0];
    return reply->type == REDIS_REPLY_STRING && reply->len == r->keys ? reply->str
                                                                      : NULL;
}

bool rlock_is_all_ours(void *round)
{
    const struct rlock_round *r = round;
    size_t n = 0;

    for (size_t i = 0; i < r->c->node_ct; i++) {
        const char *said = rlock_said(r, i);

        n += said != NULL && strspn(said, "1") == r->keys ? 1 : 0;
    }
    return n >= rlock_majority(r->c);
}

int rlock_too_few(const struct rlock_round *r)
{
    struct rlock_client *c = r->c;

    for (size_t i = 0; (i = rlock_next(c, r->answered, i)) < c->node_ct; i++) {
        struct rlock_node *node = &c->nodes[i];

        if (node->reply_ct > 0 && node->replies[0]->type == REDIS_REPLY_ERROR)
            return rlock_reply_code(c, node, node->replies[0]);
    }
    if (c->node_ct > 1)
        return rlock_fail(c, RLOCK_E_NO_QUORUM,
                          "fewer than a majority of %zu nodes answered", c->node_ct);
    return r->codes[0] != RLOCK_OK
               ? r->codes[0]
               : rlock_fail(c, RLOCK_E_PROTO, "a script answered nonsense");
}

/* ---- the acquire script: its arguments, and the answer of one server ---- */

void rlock_fill_take(struct rlock_round *r, struct rlock_node *node)
{
    static const char *const modes[] = {"all", "any", "one"};
    const struct rlock_take *take = r->arg;
    struct rlock_text *t = &node->out;

    rlock_eval(r, node, take->s->n + 1, 7);
    rlock_put_span(t, take->s);
    rlock_put(t, take->s->l->nonce, RLOCK_NONCE_HEX);
    rlock_put_number(t, take->lease_ms);
    rlock_put_window(r, node);
    rlock_put_word(t, modes[take->mode]);
    rlock_put_number(t, take->floor);
    rlock_put_number(t, take->s->l->marks);
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

/* Code of a valid answer, else RLOCK_E_PROTO. */
static int
read_kind(const struct rlock_take *take, const char *kind, const redisReply *reply)
{
    const struct rlock_span *s = take->s;
    bool is_ok = strcmp(kind, "ok") == 0 && take->mode != RLOCK_ONE;
    bool is_one = strcmp(kind, "one") == 0 && take->mode == RLOCK_ONE;
    struct rlock_slot *one = NULL;
    size_t granted = 0;
    bool is_valid;

    set_codes(s, is_ok ? RLOCK_OK : RLOCK_BUSY);
    if (strcmp(kind, "busy") == 0)
        return read_busy(s, reply, 1) ? RLOCK_BUSY : RLOCK_E_PROTO;
    if (is_one && reply->elements == 3)
        one = slot_at(s, reply->element[2]);
    if (one != NULL)
        one->code = RLOCK_OK;
    is_valid = is_ok ? read_busy(s, reply, 2) : one != NULL;
    if (take->token == 0 || !is_valid)
        return RLOCK_E_PROTO;
    for (size_t i = 0; i < s->n; i++)
        granted += rlock_span_slot(s, i)->code == RLOCK_OK ? 1 : 0;
    if (is_one || granted == s->n)
        return RLOCK_OK;
    return granted > 0 && take->mode == RLOCK_ANY ? RLOCK_PARTIAL : RLOCK_E_PROTO;
}

int rlock_read_take(struct rlock_client *c,
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
               ? rlock_reply_code(c, &c->nodes[0], reply)
               : rlock_fail(c, code, "the acquire script answered nonsense");
}

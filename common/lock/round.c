/* round: runs one script by its hash on all nodes at once; asks a node again where it
 * did not run, or where its answer was lost. */
#include <string.h>

#include "common/lock/internal.h"

/* Most tries of one server: script unknown, then clock moved, then connection lost. */
enum { TRIES_MAX = 4 };

/* A server that took longer than this counts as dead for a renewal in a hurry. */
enum { STUCK_TRIPS = 4, STUCK_MS = 20 };

/* A node that reads so slowly gets no further command. */
enum { LEFT_BYTES_MAX = 1 << 20 };

void rlock_eval(struct rlock_round *r,
                struct rlock_node *node,
                size_t keys,
                size_t args)
{
    struct rlock_text *t = &node->link.out;
    bool is_whole = rlock_has(r->whole, (size_t)(node - r->c->nodes));
    const struct lua_text *script = &lua_texts[r->script];

    r->keys = keys;
    if (node->is_asking)
        rlock_put_words(t, (const char *[]){"ASKING", NULL});
    rlock_put_command(t, 3 + keys + args + 1); /* and the id */
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
    int64_t end_ms = rlock_least(now_ms + r->node_ms, r->limit_ms);

    rlock_put_number(&node->link.out, now_ms + node->server_ahead_ms - r->node_ms);
    rlock_put_number(&node->link.out, end_ms + node->server_ahead_ms);
}

struct rlock_round rlock_round_of(struct rlock_client *c,
                                  const struct rlock *l,
                                  enum lua_id script,
                                  int64_t limit_ms,
                                  void (*fill)(struct rlock_round *r,
                                               struct rlock_node *node),
                                  const void *arg)
{
    return (struct rlock_round){.c = c,
                                .script = script,
                                .allowed = RLOCK_ALL_NODES,
                                .node_ms = rlock_node_ms(c, l->lease_ms),
                                .limit_ms = limit_ms,
                                .fill = fill,
                                .arg = arg};
}

/* Also to a node that owes answers; those come first. */
static bool may_be_told(const struct rlock_node *node)
{
    return node->state == RLOCK_UP && (node->link.sent == node->link.out.size ||
                                       node->link.out.size <= LEFT_BYTES_MAX);
}

/* ---- one try of one node ---- */

static void ask(struct rlock_round *r, size_t i)
{
    struct rlock_node *node = &r->c->nodes[i];
    struct rlock_call *k = &r->calls[i];
    bool is_short;

    k->is_asked = true;
    k->ends = node->ends;
    r->has_asked = r->has_asked || node->is_asking;
    k->sent_ms = rlock_now_ms();
    k->deadline_ms = rlock_least(k->sent_ms + r->node_ms, r->limit_ms);
    rlock_link_begin(&node->link, &k->x, node->is_asking ? 2 : 1);
    r->fill(r, node);
    rlock_put_number(&node->link.out, k->id = ++r->c->calls);
    is_short = node->link.out.is_short;
    rlock_node_send(r->c, node);
    if (is_short)
        k->x.code = RLOCK_E_NOMEM;
}

/* A renewal in a hurry does not wait for as long as a server may take. */
static bool is_stuck(const struct rlock_round *r, size_t i)
{
    int64_t waited_ms = rlock_now_ms() - r->calls[i].sent_ms;

    return !r->is_urgent || waited_ms > STUCK_TRIPS * r->c->nodes[i].trip_ms + STUCK_MS;
}

/* In a loop other calls use the connection, too: the short time of this one says
 * nothing of the server. */
static bool has_had_its_time(const struct rlock_round *r, size_t i)
{
    return r->c->loop == NULL || rlock_now_ms() - r->calls[i].sent_ms >= r->node_ms;
}

/* The connection of a single server is not used any more, but the release of what a
 * late acquire takes may still be written into it. A node of a quorum owes its answer.
 */
static void too_slow(struct rlock_round *r, size_t i)
{
    struct rlock_node *node = &r->c->nodes[i];
    struct rlock_exchange *x = &r->calls[i].x;

    (void)rlock_fail_at(r->c, node, 0, ": no answer in time");
    x->code =
        rlock_link_has_left(&node->link, x) ? RLOCK_E_UNCERTAIN : RLOCK_E_UNAVAILABLE;
    rlock_link_forget(&node->link, x);
    node->is_stale = node->is_stale ||
                     (r->c->node_ct == 1 && is_stuck(r, i) && has_had_its_time(r, i));
}

/* Tells from the answer of a node if it must be asked again; RLOCK_OK: no. */
static int read_answer(struct rlock_round *r, size_t i)
{
    struct rlock_client *c = r->c;
    struct rlock_node *node = &c->nodes[i];
    redisReply *reply = r->calls[i].x.replies[r->calls[i].x.wanted - 1];

    node->trip_ms = rlock_now_ms() - r->calls[i].sent_ms;
    if (rlock_is_error(reply, "NOSCRIPT")) {
        r->whole |= 1U << i;
        return RLOCK_E_UNAVAILABLE;
    }
    if (reply->type == REDIS_REPLY_ERROR && c->node_ct == 1 &&
        rlock_place_follow(c, node, reply->str))
        return rlock_fail(c, RLOCK_E_UNAVAILABLE, "the slot of the locks has moved");
    if (reply->type != REDIS_REPLY_ERROR && !rlock_cut_id(reply, r->calls[i].id))
        return rlock_fail_at(c, node, RLOCK_E_PROTO,
                             ": an answer that belongs to no call, or makes no sense");
    if (!rlock_is_late(reply))
        return RLOCK_OK;
    node->check_at_ms = 1; /* the clocks have diverged: compare them again */
    return rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE,
                         " ran the command after its time");
}

/* ---- all tries of one node ---- */

/* A single server is asked again after any failure, while there is time for a round
 * trip; a node of a quorum only if it did not know the script. */
static bool is_asked_again(const struct rlock_round *r, size_t i, int code)
{
    const struct rlock_node *node = &r->c->nodes[i];

    if (code == RLOCK_OK || code == RLOCK_E_NOMEM ||
        r->calls[i].tries + 1 == TRIES_MAX ||
        rlock_now_ms() + node->trip_ms >= r->limit_ms)
        return false;
    return r->c->node_ct == 1 ||
           (code == RLOCK_E_UNAVAILABLE && may_be_told(node) && rlock_has(r->whole, i));
}

static void end_try(struct rlock_round *r, size_t i)
{
    struct rlock_call *k = &r->calls[i];
    int code = k->x.code == RLOCK_OK ? read_answer(r, i) : k->x.code;

    if (r->c->nodes[i].state == RLOCK_DOWN && k->x.code < 0)
        (void)rlock_fail_by_end(r->c, &r->c->nodes[i], code);
    if (code == RLOCK_OK)
        r->answered |= 1U << i;
    else if (code == RLOCK_E_UNCERTAIN)
        r->unanswered |= 1U << i;
    if (is_asked_again(r, i, code)) {
        k->is_asked = false;
        k->tries++;
        k->again = (struct rlock_gather){.limit_ms = r->limit_ms};
    } else {
        k->code = code;
    }
}

static void step_call(struct rlock_round *r, size_t i)
{
    struct rlock_client *c = r->c;
    struct rlock_call *k = &r->calls[i];

    while (k->code == RLOCK_UNDER_WAY) {
        if (!k->is_asked) {
            int code = k->tries > 0 && c->node_ct == 1 ? rlock_gather_step(c, &k->again)
                                                       : RLOCK_OK;

            if (code == RLOCK_UNDER_WAY)
                return;
            if (code != RLOCK_OK) {
                k->code = code; /* no further try was possible */
                return;
            }
            ask(r, i);
        }
        if (k->x.code == RLOCK_UNDER_WAY && rlock_now_ms() < k->deadline_ms) {
            rlock_want(c, k->deadline_ms);
            return;
        }
        if (k->x.code == RLOCK_UNDER_WAY)
            too_slow(r, i);
        end_try(r, i);
    }
}

/* ---- all nodes ---- */

static void begin(struct rlock_round *r)
{
    r->has_begun = true;
    for (size_t i = 0; i < r->c->node_ct; i++) {
        r->who |= may_be_told(&r->c->nodes[i]) ? r->allowed & 1U << i : 0;
        r->calls[i].code = rlock_has(r->who, i) ? RLOCK_UNDER_WAY
                                                : RLOCK_E_UNAVAILABLE; /* not asked */
    }
}

void rlock_round_tell(struct rlock_round *r, unsigned who)
{
    struct rlock_client *c = r->c;

    r->whole |= who; /* nobody would read NOSCRIPT */
    for (size_t i = 0; (i = rlock_next(c, who, i)) < c->node_ct; i++) {
        struct rlock_node *node = &c->nodes[i];

        if (!may_be_told(node))
            continue;
        rlock_link_begin(&node->link, NULL, node->is_asking ? 2 : 1);
        r->fill(r, node);
        rlock_put_number(&node->link.out, ++r->c->calls);
        rlock_node_send(c, node);
    }
}

/* Nobody waits for the answers that are missing. A slow node of a quorum that may not
 * know the script either, as a faster one, is sent it in full. */
static void end(struct rlock_round *r)
{
    struct rlock_client *c = r->c;
    struct rlock_call *one = &r->calls[0];
    struct rlock_node *node = &c->nodes[0];
    unsigned slow = 0;

    for (size_t i = 0; i < c->node_ct; i++) {
        if (r->calls[i].code != RLOCK_UNDER_WAY)
            continue;
        too_slow(r, i);
        r->calls[i].code = r->calls[i].x.code;
        if (r->calls[i].code == RLOCK_E_UNCERTAIN)
            r->unanswered |= 1U << i;
        slow |= 1U << i;
    }
    if (r->whole != 0 && (slow & ~r->whole) != 0)
        rlock_round_tell(r, slow & ~r->whole);
    if (r->has_asked &&
        node->is_asking) { /* the next command begins at the slot's owner again */
        node->is_asking = false;
        rlock_node_close(node);
        rlock_next_seed(c);
    }
    if (c->node_ct == 1 && one->code == RLOCK_E_UNAVAILABLE && r->unanswered != 0)
        one->code = RLOCK_E_UNCERTAIN;
    if (c->node_ct == 1 && node->is_stale && r->script != LUA_ACQUIRE)
        rlock_node_close(node);
}

int rlock_round_step(void *round)
{
    struct rlock_round *r = round;
    bool is_open = false;

    if (!r->has_begun)
        begin(r);
    for (size_t i = 0; i < r->c->node_ct; i++) {
        step_call(r, i);
        is_open = is_open || r->calls[i].code == RLOCK_UNDER_WAY;
    }
    if (is_open && (r->enough == NULL || !r->enough(r)))
        return RLOCK_UNDER_WAY;
    end(r);
    return RLOCK_OK;
}

void rlock_round_run(struct rlock_round *r)
{
    (void)rlock_drive(r->c, rlock_round_step, r);
}

void rlock_round_clear(struct rlock_round *r)
{
    for (size_t i = 0; r->c != NULL && i < r->c->node_ct; i++) {
        if (r->calls[i].x.code == RLOCK_UNDER_WAY)
            rlock_link_forget(&r->c->nodes[i].link, &r->calls[i].x);
        rlock_exchange_clear(&r->calls[i].x);
    }
}

void rlock_round_again(struct rlock_round *r)
{
    rlock_round_clear(r);
    r->answered = r->unanswered = 0;
    r->calls[0] = (struct rlock_call){
        .code = RLOCK_UNDER_WAY, .tries = 1, .again = {.limit_ms = r->limit_ms}};
}

/* gather: the begin of every call: nodes that are down are connected, old checks are
 * repeated. A call waits for a majority only, so a slow or absent node delays nobody.
 */
#include "common/lock/connection.h"

/* Value of check_at_ms: check in the next call of any kind. */
enum { CHECK_NOW = 1 };

/* Rest after which a connection is looked at before it is used. */
enum { REST_MS = 100 };

unsigned rlock_ready_nodes(const struct rlock_client *c)
{
    unsigned who = rlock_up_nodes(c);

    for (size_t i = 0; i < c->node_ct; i++)
        who &= rlock_node_is_ready(&c->nodes[i]) ? RLOCK_ALL_NODES : ~(1U << i);
    return who;
}

static bool has_ready_majority(const struct rlock_client *c)
{
    return rlock_count(rlock_ready_nodes(c)) >= rlock_majority(c);
}

/* A connection may have been closed at rest. */
static bool has_rested(const struct rlock_node *node, int64_t now_ms)
{
    return rlock_link_owes(&node->link) || now_ms - node->link.heard_ms >= REST_MS;
}

/* Answers to other calls of the loop may be among what comes. */
static void drain(struct rlock_client *c, struct rlock_node *node)
{
    bool is_awaited = node->link.queued > 0;

    rlock_node_drain(c, node);
    if (is_awaited)
        rlock_ring(c);
}

/* A node of a quorum that owes answers is slow; a single server answers other calls. */
static bool may_be_checked(const struct rlock_client *c, const struct rlock_node *node)
{
    return c->node_ct > 1 ? rlock_node_is_ready(node)
                          : node->state == RLOCK_UP && !node->is_checking;
}

static void begin(struct rlock_client *c, struct rlock_gather *g)
{
    int64_t end_ms;

    g->has_begun = true;
    g->began_ms = rlock_now_ms();
    end_ms = g->began_ms + c->o.connect_ms;
    if (c->node_ct == 1 && c->loop == NULL) /* else other calls wait for it, too */
        end_ms = rlock_least(end_ms, g->limit_ms);
    for (size_t i = 0; i < c->node_ct; i++) {
        if (c->nodes[i].is_stale)
            rlock_node_close(&c->nodes[i]);
        if (c->nodes[i].state == RLOCK_UP && has_rested(&c->nodes[i], g->began_ms))
            drain(c, &c->nodes[i]);
    }
    g->had_majority = rlock_count(rlock_up_nodes(c)) >= rlock_majority(c);
    for (size_t i = 0; i < c->node_ct; i++) {
        struct rlock_node *node = &c->nodes[i];

        if (may_be_checked(c, node) &&
            node->check_at_ms <= (g->is_take ? g->began_ms : CHECK_NOW))
            rlock_node_check(c, node, end_ms);
        if (c->node_ct > 1 && node->state == RLOCK_DOWN &&
            g->began_ms >= node->retry_at_ms)
            rlock_node_start(c, node, end_ms);
    }
}

/* ---- one server ---- */

/* Every known Sentinel or node of a cluster is tried once more if a try fails. */
static int gather_one(struct rlock_client *c, struct rlock_gather *g)
{
    struct rlock_node *node = &c->nodes[0];

    for (;;) {
        int64_t now_ms = rlock_now_ms();
        int64_t end_ms = now_ms + c->o.connect_ms;
        int64_t until_ms = c->loop == NULL ? rlock_least(end_ms, g->limit_ms) : end_ms;
        bool does_pass = node->failure == RLOCK_E_UNAVAILABLE ||
                         node->failure == RLOCK_E_READONLY ||
                         node->failure == RLOCK_OK; /* another call ended it */

        if (node->state == RLOCK_LOCATING)
            rlock_locate_step(c, node, g->limit_ms);
        else
            rlock_node_tick(c, node);
        if (rlock_node_is_under_way(node) || node->is_checking) {
            rlock_want(c, g->limit_ms); /* it may be the try of another call */
            return now_ms < g->limit_ms ? RLOCK_UNDER_WAY
                                        : rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE,
                                                        ": no connection in time");
        }
        if (node->state == RLOCK_UP)
            return RLOCK_OK;
        if (g->tries > c->place_ct ||
            (g->tries > 0 && (now_ms >= g->limit_ms || !does_pass)))
            return node->failure == RLOCK_OK
                       ? rlock_fail_as(c, RLOCK_E_UNAVAILABLE)
                       : rlock_fail(c, node->failure, "%s", node->why);
        if (g->tries++ > 0 && c->kind == RLOCK_CLUSTER)
            rlock_next_seed(c);
        node->redirects = 0;
        if (c->kind == RLOCK_SENTINELS)
            rlock_locate_start(c, node, until_ms);
        else
            rlock_node_start(c, node, until_ms);
    }
}

/* ---- quorum ---- */

/* The reason for no majority: the failure that all nodes that are down share, else only
 * that they are down. */
static int why_not(struct rlock_client *c)
{
    const struct rlock_node *one = NULL;
    bool is_same = true;

    for (size_t i = 0; i < c->node_ct; i++) {
        if (c->nodes[i].state == RLOCK_UP)
            continue;
        is_same = is_same && (one == NULL || one->failure == c->nodes[i].failure);
        one = &c->nodes[i];
    }
    if (one != NULL && is_same && one->failure < 0 &&
        one->failure != RLOCK_E_UNAVAILABLE)
        return rlock_fail(c, one->failure, "%s", one->why);
    return rlock_fail(c, RLOCK_E_NO_QUORUM, "%zu of %zu nodes can be used; %.180s",
                      rlock_count(rlock_ready_nodes(c)), c->node_ct,
                      one != NULL && one->failure < 0 ? one->why : "no answer");
}

/* A node that is not ready, and may be soon. */
static bool may_more_come(const struct rlock_client *c)
{
    for (size_t i = 0; i < c->node_ct; i++) {
        const struct rlock_node *node = &c->nodes[i];

        if (node->state != RLOCK_DOWN && !rlock_node_is_ready(node))
            return true;
    }
    return false;
}

/* Time until which the call waits: for a majority as long as it may, and then the same
 * time again if it had none, since other nodes may be faster. */
static int64_t wait_end(const struct rlock_client *c, struct rlock_gather *g)
{
    if (!has_ready_majority(c))
        return g->limit_ms;
    if (g->majority_ms == 0)
        g->majority_ms = rlock_now_ms();
    return g->had_majority
               ? 0
               : rlock_least(2 * g->majority_ms - g->began_ms + 1, g->limit_ms);
}

static int gather_many(struct rlock_client *c, struct rlock_gather *g)
{
    int64_t until_ms;
    size_t wrong = 0;

    for (size_t i = 0; i < c->node_ct; i++)
        rlock_node_tick(c, &c->nodes[i]);
    until_ms = wait_end(c, g);
    if (rlock_now_ms() < until_ms && may_more_come(c)) {
        rlock_want(c, until_ms);
        return RLOCK_UNDER_WAY;
    }
    for (size_t i = 0; i < c->node_ct; i++) {
        const struct rlock_node *node = &c->nodes[i];

        /* it counts until it is up, also while it is tried again */
        if (node->state == RLOCK_UP || node->failure != RLOCK_E_INVAL)
            continue;
        if (++wrong >= rlock_majority(c) ||
            (g->is_take && rlock_twin_of(c, node) != NULL))
            return rlock_fail(c, RLOCK_E_INVAL, "%s", node->why);
    }
    return has_ready_majority(c) ? RLOCK_OK : why_not(c);
}

int rlock_gather_step(struct rlock_client *c, struct rlock_gather *g)
{
    if (!g->has_begun)
        begin(c, g);
    return c->node_ct == 1 ? gather_one(c, g) : gather_many(c, g);
}

struct gathering {
    struct rlock_client *c;
    struct rlock_gather g;
};

static int step(void *gathering)
{
    struct gathering *it = gathering;

    return rlock_gather_step(it->c, &it->g);
}

int rlock_gather(struct rlock_client *c, bool is_take, int64_t limit_ms)
{
    struct gathering it = {.c = c, .g = {.is_take = is_take, .limit_ms = limit_ms}};

    return rlock_drive(c, step, &it);
}

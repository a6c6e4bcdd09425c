/* locate: asks the Sentinels, one after another, for the address of the primary. */
#include <stdlib.h>
#include <string.h>

#include "common/lock/connection.h"

/* Longest wait for one Sentinel before the next is asked. */
enum { ASK_MS = 500 };

/* Moves the first place to the end, since it did not help. */
static void rotate(struct rlock_client *c)
{
    struct rlock_address first = c->places[0];

    memmove(c->places, c->places + 1, (c->place_ct - 1) * sizeof first);
    c->places[c->place_ct - 1] = first;
}

/* A Sentinel has an equal share of the time left; the primary has one share too. */
static void ask(struct rlock_client *c, const struct rlock_node *node)
{
    int64_t now_ms = rlock_now_ms();
    int64_t share =
        (node->until_ms - now_ms) / (int64_t)(c->place_ct - node->asked + 1);

    c->scout->address = c->places[0];
    rlock_node_start(c, c->scout, now_ms + rlock_least(share, ASK_MS));
}

void rlock_locate_start(struct rlock_client *c,
                        struct rlock_node *node,
                        int64_t until_ms)
{
    rlock_node_close(node);
    if (c->scout == NULL)
        c->scout = calloc(1, sizeof *c->scout);
    node->began_us = rlock_now_us();
    if (c->scout == NULL) {
        rlock_node_fail(c, node, rlock_fail_as(c, RLOCK_E_NOMEM));
        return;
    }
    if (node->failure !=
        RLOCK_OK) /* the server that the first one named is not usable */
        rotate(c);
    c->scout->is_sentinel = true;
    node->state = RLOCK_LOCATING;
    node->until_ms = until_ms;
    node->asked = 0;
    node->worst = RLOCK_E_UNAVAILABLE;
    ask(c, node);
}

static void fail(struct rlock_client *c, struct rlock_node *node)
{
    char words[RLOCK_ERROR_MAX];

    memcpy(words, c->scout->why, sizeof words);
    rlock_node_fail(c, node,
                    rlock_fail(c, node->worst,
                               "no Sentinel told where %s is; the last one: %.150s",
                               c->primary_name, words));
}

void rlock_locate_step(struct rlock_client *c,
                       struct rlock_node *node,
                       int64_t limit_ms)
{
    struct rlock_node *scout = c->scout;

    while (node->state == RLOCK_LOCATING) {
        rlock_node_tick(c, scout);
        if (rlock_node_is_under_way(scout))
            return;
        if (scout->state == RLOCK_UP) { /* it has set the address */
            int64_t end_ms = rlock_now_ms() + c->o.connect_ms;

            rlock_node_close(scout);
            rlock_node_start(c, node, rlock_least(end_ms, limit_ms));
            return;
        }
        rotate(c);
        if (scout->failure != RLOCK_E_UNAVAILABLE)
            node->worst = scout->failure;
        if (++node->asked == c->place_ct)
            fail(c, node);
        else
            ask(c, node);
    }
}

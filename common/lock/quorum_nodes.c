/* quorum_nodes: connections to the nodes; a dead one must cost next to nothing. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#include "common/lock/quorum.h"

size_t ll_quorum_majority(const struct ll_client *c)
{
    return c->node_ct / 2 + 1;
}

size_t ll_quorum_connected(const struct ll_client *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->node_ct; i++)
        n += c->nodes[i].conn != NULL ? 1 : 0;
    return n;
}

int64_t ll_quorum_node_ms(const struct ll_client *c, uint32_t lease_ms)
{
    int64_t share = lease_ms / 20;

    if (c->reply_ms > 0)
        return c->reply_ms;
    return share > 20 ? share : 20;
}

void ll_quorum_records(const struct ll_client *c, struct ll_quorum_records *names)
{
    (void)snprintf(names->node, sizeof names->node, "%s!node", c->prefix);
    (void)snprintf(names->note, sizeof names->note, "%s!amnesia", c->prefix);
}

/* ---- connecting ---- */

static void failed(struct ll_node *node, int code)
{
    ll_node_disconnect(node);
    node->failure = code;
    node->retry_at_ms = ll_now_ms() + LL_QUORUM_RETRY_MS;
}

/* Opens sockets and asks all at once for a sign of life, so that a server that accepts
 * but does not answer is found out before the handshake waits for it. */
static void knock(struct ll_client *c, bool *fresh, int64_t limit_ms)
{
    static const char *argv[] = {"PING"};
    static const size_t lens[] = {4};
    struct ll_call calls[LL_NODES_MAX] = {0};
    size_t n = 0;
    int64_t deadline_ms = ll_now_ms() + limit_ms;

    for (size_t i = 0; i < c->node_ct; i++) {
        struct ll_node *node = &c->nodes[i];
        int code;

        if (!fresh[i])
            continue;
        code = ll_node_open(c, node, deadline_ms);
        fresh[i] = code == LL_OK;
        if (code == LL_OK)
            calls[n++] =
                (struct ll_call){.node = node, .argc = 1, .argv = argv, .lens = lens};
        else
            failed(node, code);
    }
    ll_exchange(c, calls, n, ll_now_ms() + limit_ms);
    for (size_t k = 0; k < n; k++) {
        freeReplyObject(calls[k].reply); /* an error is a sign of life too */
        if (calls[k].code == LL_OK)
            continue;
        fresh[calls[k].node - c->nodes] = false;
        failed(calls[k].node, LL_E_UNCERTAIN); /* it is there, and slow */
    }
}

/* LL_OK with a majority connected. Else why not: the one reason that all the others
 * have, if it is not just that they do not answer. */
static int verdict(struct ll_client *c)
{
    char words[LL_ERROR_MAX / 2];
    size_t n = ll_quorum_connected(c);
    int reason = LL_OK;

    if (n >= ll_quorum_majority(c))
        return LL_OK;
    for (size_t i = 0; i < c->node_ct; i++) {
        const struct ll_node *node = &c->nodes[i];

        if (node->conn == NULL)
            reason = reason == LL_OK || reason == node->failure ? node->failure
                                                                : LL_E_UNAVAILABLE;
    }
    if (reason >= 0 || reason == LL_E_UNAVAILABLE || reason == LL_E_UNCERTAIN)
        reason = LL_E_NO_QUORUM;
    if (strstr(c->error, " nodes are connected") != NULL)
        return reason; /* nothing new since it was said */
    (void)snprintf(words, sizeof words, "%.*s", (int)sizeof words - 1, c->error);
    return ll_fail(c, reason, "%zu of %zu nodes are connected; the last word was: %s",
                   n, c->node_ct, words);
}

static void gather(struct ll_client *c, int64_t limit_ms, bool at_once)
{
    bool fresh[LL_NODES_MAX] = {0};
    int64_t shake_ms = limit_ms * 10 < c->connect_ms ? limit_ms * 10 : c->connect_ms;
    int64_t now_ms = ll_now_ms();
    bool any = false;

    for (size_t i = 0; i < c->node_ct; i++) {
        fresh[i] =
            c->nodes[i].conn == NULL && (at_once || now_ms >= c->nodes[i].retry_at_ms);
        any = any || fresh[i];
    }
    if (any)
        knock(c, fresh, limit_ms);
    for (size_t i = 0; i < c->node_ct; i++) {
        int code =
            fresh[i] ? ll_node_shake(c, &c->nodes[i], ll_now_ms() + shake_ms) : LL_OK;

        if (code != LL_OK)
            failed(&c->nodes[i], code);
    }
}

int ll_quorum_gather(struct ll_client *c, int64_t limit_ms)
{
    gather(c, limit_ms, false);
    return verdict(c);
}

/* Without a majority it takes the time it was given, with one it is no more patient
 * than an acquire. */
int ll_quorum_connect(struct ll_client *c)
{
    bool enough = ll_quorum_connected(c) >= ll_quorum_majority(c);

    gather(c, enough ? ll_quorum_node_ms(c, 0) : c->connect_ms, !enough);
    return verdict(c);
}

/* A node that we take for amnesic may only have got another replication id (its first
 * replica does that): it must be asked who it is before it is let in again. */
void ll_quorum_doubt(struct ll_client *c, size_t node)
{
    int64_t now_ms = ll_now_ms();

    if (now_ms < c->nodes[node].doubt_at_ms)
        return;
    c->nodes[node].doubt_at_ms = now_ms + LL_QUORUM_RETRY_MS;
    ll_node_disconnect(&c->nodes[node]);
}

/* drive: the blocking form: calls the step of an operation, and waits in between. And
 * commands on one node that are no script. */
#include "common/lock/connection.h"

/* Longest wait without a step. */
enum { STEP_MS = 1000 };

enum { HELPERS = 2 };

size_t rlock_all_nodes(struct rlock_client *c, struct rlock_node **nodes)
{
    size_t n = 0;

    for (size_t i = 0; i < c->node_ct; i++)
        nodes[n++] = &c->nodes[i];
    if (c->scout != NULL)
        nodes[n++] = c->scout;
    if (c->ears.own != NULL)
        nodes[n++] = c->ears.own;
    return n;
}

short rlock_awaited_events(const struct rlock_node *node)
{
    bool is_idle = node->state == RLOCK_UP && node->link.queued == 0;

    return node->conn == NULL || is_idle ? (short)0 : rlock_node_events(node);
}

/* A single server is waited for in its read, which ends after RLOCK_TICK_MS: a poll
 * before it costs a fifth of a short round trip. */
static bool may_read(const struct rlock_client *c, const struct rlock_node *node)
{
    return c->node_ct == 1 && c->cancel_fd < 0 && !node->is_layered &&
           node->state == RLOCK_UP && node->link.queued > 0 &&
           rlock_node_events(node) == POLLIN &&
           rlock_now_ms() + RLOCK_TICK_MS < c->want_ms;
}

static void wait_and_do(struct rlock_client *c, int64_t until_ms)
{
    struct pollfd fds[RLOCK_NODES_MAX + HELPERS + 1];
    struct rlock_node *nodes[RLOCK_NODES_MAX + HELPERS];
    size_t n = rlock_all_nodes(c, nodes);

    for (size_t i = 0; i < n; i++) {
        short events = rlock_awaited_events(nodes[i]);

        until_ms = nodes[i]->has_more ? 0 : until_ms;
        fds[i] = (struct pollfd){.fd = -1};
        if (events != 0)
            fds[i] = (struct pollfd){.fd = nodes[i]->conn->fd, .events = events};
    }
    fds[n] = (struct pollfd){.fd = c->cancel_fd, .events = POLLIN};
    (void)rlock_poll(fds, n + 1, until_ms);
    for (size_t i = 0; i < n; i++) {
        if (fds[i].revents != 0 || nodes[i]->has_more)
            rlock_node_io(c, nodes[i], nodes[i]->has_more ? POLLIN : fds[i].revents);
    }
}

void rlock_await(struct rlock_client *c)
{
    if (may_read(c, &c->nodes[0]))
        rlock_node_read(c, &c->nodes[0]);
    else
        wait_and_do(c, rlock_least(c->want_ms, rlock_now_ms() + STEP_MS));
}

void rlock_io(struct rlock_client *c)
{
    wait_and_do(c, 0);
}

int rlock_drive(struct rlock_client *c, int (*step)(void *op), void *op)
{
    for (;;) {
        int code;

        c->want_ms = INT64_MAX;
        code = step(op);
        if (code != RLOCK_UNDER_WAY) {
            rlock_ring(c); /* answers of others may have come */
            return code;
        }
        rlock_await(c);
    }
}

/* ---- commands on one node ---- */

void rlock_ask_send(struct rlock_ask *a, int64_t until_ms)
{
    struct rlock_node *node = &a->c->nodes[a->node];
    bool is_short = node->link.out.is_short;

    a->until_ms = until_ms;
    rlock_node_send(a->c, node);
    if (is_short)
        a->x.code = RLOCK_E_NOMEM;
}

/* A late answer must not be the next one's. */
int rlock_ask_step(void *ask)
{
    struct rlock_ask *a = ask;
    struct rlock_node *node = &a->c->nodes[a->node];

    if (a->x.code == RLOCK_UNDER_WAY && rlock_now_ms() >= a->until_ms) {
        (void)rlock_fail_at(a->c, node, 0, ": no answer in time");
        rlock_node_close(node);
    }
    if (a->x.code == RLOCK_UNDER_WAY)
        rlock_want(a->c, a->until_ms);
    return a->x.code;
}

void rlock_ask_clear(struct rlock_ask *a)
{
    if (a->x.code == RLOCK_UNDER_WAY)
        rlock_link_forget(&a->c->nodes[a->node].link, &a->x);
    rlock_exchange_clear(&a->x);
}

const redisReply *rlock_ask(struct rlock_ask *a, int64_t until_ms)
{
    rlock_ask_send(a, until_ms);
    return rlock_drive(a->c, rlock_ask_step, a) == RLOCK_OK
               ? a->x.replies[a->x.wanted - 1]
               : NULL;
}

/* drive: the blocking form: calls the step of an operation, and waits in between. And
 * commands on one node that are no script. */
#include "common/lock/connection.h"

/* Longest wait without a step. */
enum { STEP_MS = 1000 };

/* The connection that a node waits for. */
static struct rlock_node *awaited(struct rlock_client *c, size_t i)
{
    return c->nodes[i].state == RLOCK_LOCATING ? c->scout : &c->nodes[i];
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

void rlock_await(struct rlock_client *c)
{
    struct pollfd fds[RLOCK_NODES_MAX + 1];
    int64_t until_ms = rlock_least(c->want_ms, rlock_now_ms() + STEP_MS);

    if (may_read(c, &c->nodes[0])) {
        rlock_node_read(c, &c->nodes[0]);
        return;
    }
    for (size_t i = 0; i < c->node_ct; i++) {
        const struct rlock_node *node = awaited(c, i);
        bool is_awaited = node->conn != NULL && !rlock_node_is_ready(node);

        until_ms = node->has_more ? 0 : until_ms;
        fds[i] = (struct pollfd){.fd = -1};
        if (is_awaited)
            fds[i] = (struct pollfd){.fd = node->conn->fd,
                                     .events = rlock_node_events(node)};
    }
    fds[c->node_ct] = (struct pollfd){.fd = c->cancel_fd, .events = POLLIN};
    (void)rlock_poll(fds, c->node_ct + 1, until_ms);
    for (size_t i = 0; i < c->node_ct; i++) {
        struct rlock_node *node = awaited(c, i);

        if (fds[i].revents != 0 || node->has_more)
            rlock_node_io(c, node, node->has_more ? POLLIN : fds[i].revents);
    }
}

int rlock_drive(struct rlock_client *c, int (*step)(void *op), void *op)
{
    for (;;) {
        int code;

        c->want_ms = INT64_MAX;
        code = step(op);
        if (code != RLOCK_UNDER_WAY)
            return code;
        rlock_await(c);
    }
}

/* ---- commands on one node ---- */

static bool is_cancelled(const struct rlock_client *c)
{
    struct pollfd p = {.fd = c->cancel_fd, .events = POLLIN};

    return c->cancel_fd >= 0 && rlock_poll(&p, 1, 0) > 0;
}

static int ask_step(void *asked)
{
    struct rlock_ask *a = asked;

    if (a->x.code != RLOCK_UNDER_WAY)
        return a->x.code;
    if (rlock_now_ms() >= a->until_ms || is_cancelled(a->c))
        return RLOCK_E_UNCERTAIN;
    rlock_want(a->c, a->until_ms);
    return RLOCK_UNDER_WAY;
}

const redisReply *rlock_ask(struct rlock_ask *a, int64_t until_ms)
{
    struct rlock_node *node = &a->c->nodes[a->node];
    bool is_short = node->link.out.is_short;

    a->until_ms = until_ms;
    rlock_node_send(a->c, node);
    if (is_short)
        a->x.code = RLOCK_E_NOMEM;
    (void)rlock_drive(a->c, ask_step, a);
    if (a->x.code == RLOCK_OK)
        return a->x.replies[a->x.wanted - 1];
    if (a->x.code == RLOCK_UNDER_WAY) { /* a late answer must not be the next one's */
        (void)rlock_fail_at(a->c, node, 0, ": no answer in time");
        rlock_node_close(node);
    }
    return NULL;
}

/* end: the ends of a connection, with their reasons. */
#include <string.h>

#include "common/lock/connection.h"

/* Back-off between tries to connect to a node of a quorum. */
enum { PAUSE_FIRST_MS = 50, PAUSE_MOST_MS = 5000 };

void rlock_node_close(struct rlock_node *node)
{
    node->ends += node->state != RLOCK_DOWN ? 1 : 0;
    node->is_why_of_end = false;
    rlock_link_close(&node->link);
    if (node->conn != NULL)
        rlock_socket_watch(node, node->watcher, 0);
    if (node->conn != NULL)
        redisFree(node->conn); /* closes our descriptor only; nothing is sent */
    node->conn = NULL;
    node->ssl = NULL; /* the connection's own */
    node->state = RLOCK_DOWN;
    node->check_at_ms = 0;
    node->is_flushing = node->has_more = false;
    node->is_checking = node->is_stale = false;
}

/* The hook is told of a new connection to a server that grants; not of one to a
 * Sentinel or for wake-ups. */
void rlock_node_tell_hook(struct rlock_client *c,
                          const struct rlock_node *node,
                          int code)
{
    if (node->check_at_ms == 0 && node >= c->nodes && node < c->nodes + c->node_ct)
        (void)rlock_leave(
            c, (struct rlock_event){RLOCK_EV_CONNECT, code, 0, 0, node->began_us});
}

void rlock_node_fail(struct rlock_client *c, struct rlock_node *node, int code)
{
    rlock_node_tell_hook(c, node, code);
    rlock_node_close(node);
    node->failure = code;
    (void)memcpy(node->why, c->error, sizeof node->why);
    node->is_why_of_end = true;
    node->pause_ms =
        rlock_least(rlock_most(node->pause_ms * 2, PAUSE_FIRST_MS), PAUSE_MOST_MS);
    node->retry_at_ms =
        c->node_ct == 1 ? 0 : rlock_now_ms() + rlock_jitter_ms(node->pause_ms);
}

void rlock_node_free(struct rlock_node *node)
{
    rlock_node_close(node);
    rlock_exchange_clear(&node->shake);
    rlock_link_free(&node->link);
}

/* A late answer must not be taken for the next one. */
void rlock_node_broke(struct rlock_client *c, struct rlock_node *node, const char *why)
{
    int code = why == rlock_no_memory ? RLOCK_E_NOMEM : RLOCK_E_UNAVAILABLE;

    /* the reason may be text of the context: use it before that is freed */
    (void)rlock_fail_at(c, node, 0, ": %s", why);
    if (node->state == RLOCK_SHAKING)
        rlock_node_fail(c, node,
                        code == RLOCK_E_UNAVAILABLE ? rlock_handshake_failure(c, node)
                                                    : code);
    else
        rlock_node_close(node);
    (void)memcpy(node->why, c->error, sizeof node->why);
    node->is_why_of_end = true;
}

int rlock_fail_by_end(struct rlock_client *c, const struct rlock_node *node, int code)
{
    return node->is_why_of_end && code != RLOCK_E_NOMEM
               ? rlock_fail(c, code, "%s", node->why)
               : rlock_fail_as(c, code);
}

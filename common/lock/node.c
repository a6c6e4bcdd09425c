/* node: drives the connection to an address without waiting: socket, TLS, handshake,
 * then commands and answers. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/lock/connection.h"

/* A node that owes an answer that nobody waits for longer than this counts as dead. */
enum { OWED_MOST_MS = 1000 };

/* Most reads from the TLS layer at once. */
enum { READS_MAX = 16 };

/* A node that could not be checked again for so long is connected anew. */
enum { CHECK_LATE_MS = 10000 };

bool rlock_node_is_under_way(const struct rlock_node *node)
{
    return node->state != RLOCK_UP && node->state != RLOCK_DOWN;
}

bool rlock_node_is_ready(const struct rlock_node *node)
{
    return node->state == RLOCK_UP && !node->is_checking &&
           !rlock_link_owes(&node->link);
}

/* ---- bytes ---- */

static bool is_writing(const struct rlock_node *node)
{
    return node->link.sent < node->link.out.size || node->is_flushing;
}

static ssize_t receive(struct rlock_node *node, char *bytes, size_t size, int flags)
{
    return node->is_layered ? rlock_layer_read(node->conn, bytes, size)
                            : recv(node->conn->fd, bytes, size, flags);
}

/* Poll does not see data buffered in the TLS layer, and an answer that has come is not
 * late, so a read goes on until none is left; but not for ever, of a server that sends
 * without end. */
static void read_some(struct rlock_client *c, struct rlock_node *node, int flags)
{
    RLOCK_AS_IT_IS char bytes[16384];
    const char *why = NULL;
    ssize_t n;
    int reads = 0;

    do {
        n = receive(node, bytes, sizeof bytes, reads > 0 ? MSG_DONTWAIT : flags);
        if (n > 0)
            why = rlock_link_feed(&node->link, bytes, (size_t)n);
    } while (why == NULL && (n == sizeof bytes || (n > 0 && node->is_layered)) &&
             ++reads < READS_MAX);
    node->has_more = n > 0 && node->is_layered;
    if (n < 0 && !node->is_layered && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0)
        why = node->is_layered ? node->conn->errstr : strerror(errno);
    else if (n == 0 && !node->is_layered)
        why = "Server closed the connection";
    if (why != NULL)
        rlock_node_broke(c, node, why);
}

static void write_some(struct rlock_client *c, struct rlock_node *node)
{
    struct rlock_link *k = &node->link;
    const char *why = NULL;
    bool is_done = true;
    size_t left;
    const char *data = rlock_link_out(k, &left);
    ssize_t n;

    if (node->is_layered) {
        rlock_link_sent(k, left); /* some bytes may have left */
        if (rlock_layer_write(node->conn, data, left, &is_done) != REDIS_OK)
            why = node->conn->errstr;
        node->is_flushing = !is_done;
    } else {
        n = rlock_send_now(node->conn->fd, data, left);
        if (n > 0)
            rlock_link_sent(k, (size_t)n);
        else if (errno != EAGAIN && errno != EINTR)
            why = strerror(errno);
    }
    if (why != NULL && !node->is_layered)
        read_some(c, node, MSG_DONTWAIT); /* the server may have told its reason */
    if (why != NULL && node->conn != NULL)
        rlock_node_broke(c, node, why);
}

void rlock_node_send(struct rlock_client *c, struct rlock_node *node)
{
    if (node->link.out.is_short) {
        rlock_node_close(node); /* the server may have half a command */
        (void)rlock_fail_as(c, RLOCK_E_NOMEM);
    } else if (node->conn != NULL) {
        write_some(c, node); /* the buffer nearly always has room: no poll before */
    }
}

short rlock_node_events(const struct rlock_node *node)
{
    if (node->state == RLOCK_CONNECTING)
        return POLLOUT;
    if (node->state == RLOCK_TLS)
        return rlock_tls_events(node);
    return (short)(is_writing(node) ? POLLIN | POLLOUT : POLLIN);
}

/* ---- the handshake, and a check ---- */

static int shake(struct rlock_client *c, struct rlock_node *node)
{
    if (rlock_socket_wait(node) != 0)
        return rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE, ": %s", strerror(errno));
    node->state = RLOCK_SHAKING;
    rlock_handshake_put(c, node);
    if (node->link.out.is_short)
        return rlock_fail_as(c, RLOCK_E_NOMEM);
    return RLOCK_OK;
}

void rlock_node_checked(struct rlock_client *c, struct rlock_node *node)
{
    rlock_node_tell_hook(c, node, RLOCK_OK);
    node->state = RLOCK_UP;
    node->failure = RLOCK_OK;
    node->pause_ms = 0;
    node->checked_ms = rlock_now_ms();
    node->check_at_ms = node->checked_ms + RLOCK_CHECK_MS;
}

void rlock_node_check(struct rlock_client *c, struct rlock_node *node, int64_t until_ms)
{
    node->is_checking = true;
    node->until_ms = until_ms;
    rlock_handshake_put(c, node);
    rlock_node_send(c, node);
}

static void read_handshake(struct rlock_client *c, struct rlock_node *node)
{
    int code = rlock_handshake_read(c, node);

    node->is_checking = false;
    if (code == RLOCK_OK)
        rlock_node_checked(c, node);
    else if (code == RLOCK_BUSY) /* elsewhere */
        rlock_node_start(c, node, node->until_ms);
    else
        rlock_node_fail(c, node, code);
}

/* The answers of a handshake or a check that are all there. */
static void settle(struct rlock_client *c, struct rlock_node *node)
{
    if ((node->state == RLOCK_SHAKING || node->is_checking) &&
        node->shake.code == RLOCK_OK)
        read_handshake(c, node);
}

void rlock_node_read(struct rlock_client *c, struct rlock_node *node)
{
    read_some(c, node, 0);
    settle(c, node);
}

void rlock_node_drain(struct rlock_client *c, struct rlock_node *node)
{
    read_some(c, node, MSG_DONTWAIT);
    settle(c, node);
}

/* ---- steps ---- */

/* Opens the connection; what was handed in is connected already. */
static void begin(struct rlock_client *c, struct rlock_node *node)
{
    int code = rlock_socket_open(c, node);

    if (code == RLOCK_OK && c->o.connect != NULL)
        code = shake(c, node);
    if (code < 0)
        rlock_node_fail(c, node, code);
}

void rlock_node_start(struct rlock_client *c, struct rlock_node *node, int64_t until_ms)
{
    rlock_node_close(node);
    node->until_ms = until_ms;
    node->began_us = rlock_now_us();
    node->place_at = node->place_ct = 0;
    begin(c, node);
}

/* The next address of its host, if there is another one. */
static bool go_to_next(struct rlock_client *c, struct rlock_node *node)
{
    if (!rlock_socket_has_next(node))
        return false;
    rlock_node_close(node);
    node->place_at++;
    begin(c, node);
    return true;
}

/* Connects further: RLOCK_OK, RLOCK_BUSY (not yet), or the fault. */
static int connect_further(struct rlock_client *c, struct rlock_node *node)
{
    int code = RLOCK_OK;

    if (node->state == RLOCK_CONNECTING) {
        code = rlock_socket_check(c, node);
        if (code == RLOCK_OK && node->address.is_tls)
            node->state = RLOCK_TLS;
    }
    if (code == RLOCK_OK && node->state == RLOCK_TLS)
        code = rlock_tls_step(c, node);
    return code == RLOCK_OK ? shake(c, node) : code;
}

void rlock_node_io(struct rlock_client *c, struct rlock_node *node, short events)
{
    bool may_write = is_writing(node) && (events & (POLLIN | POLLOUT)) == POLLOUT;

    if (node->state == RLOCK_CONNECTING || node->state == RLOCK_TLS) {
        int code = connect_further(c, node);

        if (code < 0 && !go_to_next(c, node))
            rlock_node_fail(c, node, code);
    } else if (may_write) {
        write_some(c, node);
    } else if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) {
        rlock_node_drain(c, node);
    }
}

/* The end of a check that was not answered in time. A node of a quorum that is slower
 * than a majority is checked another time. */
static void end_check(struct rlock_client *c, struct rlock_node *node, int64_t now_ms)
{
    if (c->node_ct == 1 || now_ms - node->checked_ms > CHECK_LATE_MS) {
        rlock_node_broke(c, node, "no answer in time");
        return;
    }
    rlock_link_forget(&node->link, &node->shake);
    node->is_checking = false;
    node->check_at_ms = now_ms + RLOCK_CHECK_MS;
}

static void end_try(struct rlock_client *c, struct rlock_node *node)
{
    int code = rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE, ": no %s in time",
                             node->state == RLOCK_SHAKING ? "answer" : "connection");

    rlock_node_fail(c, node, code);
}

void rlock_node_tick(struct rlock_client *c, struct rlock_node *node)
{
    int64_t now_ms = rlock_now_ms();
    bool is_limited = rlock_node_is_under_way(node) || node->is_checking;

    if (is_limited && now_ms >= node->until_ms && node->is_checking)
        end_check(c, node, now_ms);
    else if (is_limited && now_ms >= node->until_ms)
        end_try(c, node);
    else if (is_limited)
        rlock_want(c, node->until_ms);
    if (rlock_socket_has_next(node)) {
        if (now_ms >= node->next_place_ms)
            (void)go_to_next(c, node);
        rlock_want(c, node->next_place_ms);
    }
    if (node->state == RLOCK_CONNECTING && node->conn == NULL) {
        if (now_ms >= node->again_ms)
            begin(c, node);
        rlock_want(c, node->again_ms);
    }
    if (node->state != RLOCK_UP || !rlock_link_owes(&node->link))
        return;
    if (now_ms - node->link.heard_ms > OWED_MOST_MS)
        rlock_node_fail(c, node,
                        rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE, ": too slow"));
    else
        rlock_want(c, node->link.heard_ms + OWED_MOST_MS + 1);
}

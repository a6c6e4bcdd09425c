/* talk: sends commands to one or several nodes at once and reads their answers, until a
 * deadline. A failed connection is closed; a slow node of a quorum stays connected and
 * owes its answers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/lock/connection.h"

/* ---- one node ---- */

static void drop_replies(struct rlock_node *node)
{
    for (size_t i = 0; i < node->reply_ct; i++)
        freeReplyObject(node->replies[i]);
    node->reply_ct = 0;
}

void rlock_node_free(struct rlock_node *node)
{
    rlock_node_close(node);
    drop_replies(node);
    free(node->replies);
    rlock_text_free(&node->out);
}

void rlock_talk_begin(struct rlock_node *node, size_t answers)
{
    drop_replies(node);
    if (node->sent == node->out.size)
        node->out.size = node->sent = 0;
    if (answers > node->reply_room) {
        void *bigger = realloc(node->replies, answers * sizeof(redisReply *));

        if (bigger == NULL) {
            node->out.is_short = true;
            return;
        }
        node->replies = bigger;
        node->reply_room = answers;
    }
    node->wanted = answers;
    node->has_left = false;
    node->code = RLOCK_BUSY; /* under way */
}

/* Ends the connection: a late answer must not be taken for the next one. */
static void broke(struct rlock_client *c, struct rlock_node *node, const char *why)
{
    int code = node->has_left ? RLOCK_E_UNCERTAIN : RLOCK_E_UNAVAILABLE;

    /* the reason may be text of the context: use it before that is freed */
    (void)rlock_fail_at(c, node, 0, ": %s", why);
    rlock_node_close(node);
    if (node->code == RLOCK_BUSY)
        node->code = code;
}

static void write_some(struct rlock_client *c, struct rlock_node *node)
{
    const char *data = node->out.at + node->sent;
    size_t left = node->out.size - node->sent;
    bool is_done = true;
    ssize_t n;

    if (node->is_layered) {
        node->sent = node->out.size;
        node->has_left = true; /* some bytes may have left */
        if (rlock_layer_write(node->conn, data, left, &is_done) != REDIS_OK)
            broke(c, node, node->conn->errstr);
        else
            node->is_flushing = !is_done;
        return;
    }
    n = send(node->conn->fd, data, left, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
        node->sent += (size_t)n;
        node->has_left = true;
    } else if (errno != EAGAIN && errno != EINTR) {
        broke(c, node, strerror(errno));
    }
}

/* A message that nobody asked for, over the caller's connection (RESP3). */
static bool is_push(const redisReply *reply)
{
#ifdef REDIS_REPLY_PUSH
    return reply->type == REDIS_REPLY_PUSH;
#else
    return reply == NULL;
#endif
}

/* False: the answer belongs to no command, so none that came or comes does for certain.
 */
static bool keep_reply(struct rlock_node *node, redisReply *reply)
{
    if (is_push(reply)) {
        freeReplyObject(reply);
    } else if (node->owed > 0) { /* of an earlier exchange */
        node->owed--;
        node->owed_since_ms = rlock_now_ms(); /* the node is slow, not dead */
        freeReplyObject(reply);
    } else if (node->code == RLOCK_BUSY && node->reply_ct < node->wanted) {
        node->replies[node->reply_ct++] = reply;
        if (node->reply_ct == node->wanted)
            node->code = RLOCK_OK;
    } else {
        freeReplyObject(reply);
        return false;
    }
    return true;
}

static void read_some(struct rlock_client *c, struct rlock_node *node)
{
    bool is_layered = node->is_layered;
    void *got = NULL;
    size_t before;
    int code;

    /* Poll does not see data buffered in the TLS layer: read until none is left, but
     * not beyond the end of the call, of a server that sends without end. */
    do {
        before = node->conn->reader->len;
        code = is_layered ? rlock_layer_read(node->conn) : redisBufferRead(node->conn);
        if (code != REDIS_OK) {
            broke(c, node, node->conn->errstr);
            return;
        }
        is_layered = is_layered && node->conn->reader->len > before;
        do {
            if (redisReaderGetReply(node->conn->reader, &got) != REDIS_OK) {
                broke(c, node, node->conn->reader->errstr);
                return;
            }
            if (got != NULL && !keep_reply(node, got)) {
                node->code = RLOCK_BUSY;
                broke(c, node, "an answer that nobody asked for");
                return;
            }
        } while (got != NULL);
    } while (is_layered && rlock_now_ms() < c->limit_ms);
}

static bool is_writing(const struct rlock_node *node)
{
    return node->sent < node->out.size || node->is_flushing;
}

short rlock_node_events(const struct rlock_node *node)
{
    if (node->state == RLOCK_CONNECTING)
        return POLLOUT;
    if (node->state == RLOCK_TLS)
        return rlock_tls_events(node);
    return (short)(is_writing(node) ? POLLIN | POLLOUT : POLLIN);
}

short rlock_node_ready(const struct rlock_node *node)
{
    struct pollfd p = {.fd = node->conn->fd, .events = rlock_node_events(node)};

    return poll(&p, 1, 0) > 0 ? p.revents : (short)0;
}

void rlock_talk_step(struct rlock_client *c, struct rlock_node *node, short events)
{
    if (is_writing(node) && (events & (POLLIN | POLLOUT)) == POLLOUT)
        write_some(c, node);
    else if ((events & (POLLIN | POLLHUP | POLLERR)) != 0)
        read_some(c, node);
}

/* ---- all nodes ---- */

/* True if the exchange failed before a byte was sent. */
static bool is_lame(struct rlock_client *c, struct rlock_node *node)
{
    if (node->out.is_short) {
        node->out.is_short = false;
        rlock_node_close(node); /* the server may have half a command */
        node->code = rlock_fail_as(c, RLOCK_E_NOMEM);
    } else if (node->conn == NULL) {
        node->code = RLOCK_E_UNAVAILABLE;
    }
    return node->code != RLOCK_BUSY;
}

/* At the deadline a single server is closed; a node of a quorum owes its answers. */
static void too_slow(struct rlock_client *c, struct rlock_node *node)
{
    if (node->code != RLOCK_BUSY)
        return;
    if (c->node_ct == 1 || node->state != RLOCK_UP) {
        broke(c, node, "no answer in time");
        return;
    }
    if (node->owed == 0)
        node->owed_since_ms = rlock_now_ms();
    node->owed += node->wanted - node->reply_ct;
    node->code = node->has_left ? RLOCK_E_UNCERTAIN : RLOCK_E_UNAVAILABLE;
}

void rlock_talk_tell(struct rlock_client *c, struct rlock_node *node)
{
    if (is_lame(c, node))
        return;
    write_some(c, node);
    too_slow(c, node);
}

static size_t collect(struct rlock_client *c, unsigned who, struct pollfd *fds)
{
    size_t open = 0;

    for (size_t i = 0; i < c->node_ct; i++) {
        struct rlock_node *node = &c->nodes[i];
        bool is_open = rlock_has(who, i) && node->code == RLOCK_BUSY;

        fds[i].fd = is_open ? node->conn->fd : -1;
        fds[i].events = is_open ? rlock_node_events(node) : 0;
        fds[i].revents = 0;
        open += is_open ? 1 : 0;
    }
    return open;
}

void rlock_talk(struct rlock_client *c,
                unsigned who,
                int64_t deadline_ms,
                bool (*enough)(void *arg),
                void *arg)
{
    struct pollfd fds[RLOCK_NODES_MAX + 1];
    struct pollfd *cancel = &fds[c->node_ct];
    struct rlock_node *one = &c->nodes[0];

    *cancel = (struct pollfd){.fd = c->cancel_fd, .events = POLLIN};
    for (size_t i = 0; i < c->node_ct; i++) {
        if (rlock_has(who, i) && !is_lame(c, &c->nodes[i]))
            write_some(
                c,
                &c->nodes[i]); /* the buffer nearly always has room: try without poll */
    }
    /* A single node waits in its read, which ends after RLOCK_TICK_MS: a poll before it
     * costs a fifth of a short round trip. */
    if (c->node_ct == 1 && c->cancel_fd < 0 && one->code == RLOCK_BUSY &&
        !is_writing(one) && !one->is_layered &&
        rlock_now_ms() + RLOCK_TICK_MS < deadline_ms)
        read_some(c, one);
    while (collect(c, who, fds) > 0 && (enough == NULL || !enough(arg))) {
        if (rlock_now_ms() >= deadline_ms ||
            rlock_poll(fds, c->node_ct + 1, deadline_ms) == 0)
            break;
        if (cancel->revents != 0)
            break;
        for (size_t i = 0; i < c->node_ct; i++) {
            if (fds[i].fd >= 0 && fds[i].revents != 0)
                rlock_talk_step(c, &c->nodes[i], fds[i].revents);
        }
    }
    for (size_t i = 0; i < c->node_ct; i++) {
        if (rlock_has(who, i))
            too_slow(c, &c->nodes[i]);
    }
}

int64_t rlock_reply_deadline(const struct rlock_client *c, int64_t reply_ms)
{
    return rlock_least(rlock_now_ms() + reply_ms, c->limit_ms);
}

/* node: connects to an address without waiting: socket, TLS, handshake. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "common/lock/connection.h"

/* Back-off between tries to connect to a node of a quorum. */
enum { PAUSE_FIRST_MS = 50, PAUSE_MOST_MS = 5000 };

void rlock_node_fail(struct rlock_client *c, struct rlock_node *node, int code)
{
    if (node->check_at_ms == 0 && !node->is_sentinel)
        (void)rlock_leave(
            c, (struct rlock_event){RLOCK_EV_CONNECT, code, 0, 0, node->began_us});
    rlock_node_close(node);
    node->failure = code;
    (void)memcpy(node->why, c->error, sizeof node->why);
    node->pause_ms =
        rlock_least(rlock_most(node->pause_ms * 2, PAUSE_FIRST_MS), PAUSE_MOST_MS);
    node->retry_at_ms =
        c->node_ct == 1 ? 0 : rlock_now_ms() + rlock_jitter_ms(node->pause_ms);
}

/* ---- a new connection ---- */

/* Longest valid array: an acquire with every key busy, or a step of a scan. hiredis
 * alone would allocate any length that the server announces. */
enum { ELEMENTS_MAX = 1 << 16 };

#if HIREDIS_MAJOR >= 1
typedef size_t element_ct;
#else
typedef int element_ct;
#endif

static void *make_array(const redisReadTask *task, element_ct elements)
{
    const struct rlock_node *node = task->privdata;

    if (elements > ELEMENTS_MAX)
        return NULL;
    return node->hiredis_functions->createArray(task, elements);
}

/* Limits the lengths of arrays, and closes the descriptor on exec. */
static void adopt(struct rlock_node *node)
{
    redisReader *reader = node->conn->reader;

    node->hiredis_functions = reader->fn;
    node->functions = *reader->fn;
    node->functions.createArray = make_array;
    reader->fn = &node->functions;
    reader->privdata = node;
    (void)fcntl(node->conn->fd, F_SETFD, FD_CLOEXEC);
}

/* ---- steps: RLOCK_OK, RLOCK_BUSY (not yet), or the fault that ends the try ---- */

/* Reads block for at most a tick; each write is non-blocking by its flag. Connections
 * that go through hiredis never block. */
static int set_waiting(const struct rlock_node *node)
{
    static const struct timeval tick = {0, RLOCK_TICK_MS * 1000};
    int fd = node->conn->fd;
    int flags = fcntl(fd, F_GETFL);
    int wanted = node->is_layered ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;

    if (flags < 0 || fcntl(fd, F_SETFL, wanted) != 0)
        return -1;
    return node->is_layered
               ? 0
               : setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof tick);
}

static int shake(struct rlock_client *c, struct rlock_node *node)
{
    if (set_waiting(node) != 0)
        return rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE, ": %s", strerror(errno));
    node->state = RLOCK_SHAKING;
    rlock_handshake_put(c, node);
    if (!node->out.is_short)
        return RLOCK_OK;
    node->out.is_short = false;
    return rlock_fail_as(c, RLOCK_E_NOMEM);
}

static int begin(struct rlock_client *c, struct rlock_node *node)
{
    const struct rlock_address *a = &node->address;
    bool is_handed_in = c->o.connect != NULL;

    if (is_handed_in)
        node->conn = c->o.connect(c->o.connect_arg);
    else
        node->conn = a->is_unix ? redisConnectUnixNonBlock(a->host)
                                : redisConnectNonBlock(a->host, a->port);
    if (node->conn == NULL && is_handed_in)
        return rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE,
                             ": the program has no connection for it");
    if (node->conn == NULL)
        return rlock_fail_as(c, RLOCK_E_NOMEM);
    if (node->conn->err != 0)
        return rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE, ": %s", node->conn->errstr);
    adopt(node);
    node->state = RLOCK_CONNECTING;
    node->is_layered = a->is_tls;
    if (!is_handed_in)
        return RLOCK_OK;
    node->is_layered = HIREDIS_MAJOR >= 1; /* older versions have no layers */
    node->conn->flags &= ~REDIS_BLOCK;
    return shake(c, node);
}

void rlock_node_start(struct rlock_client *c, struct rlock_node *node, int64_t until_ms)
{
    int code;

    rlock_node_close(node);
    node->until_ms = until_ms;
    node->began_us = rlock_now_us();
    code = begin(c, node);
    if (code != RLOCK_OK)
        rlock_node_fail(c, node, code);
}

static int check_socket(struct rlock_client *c, struct rlock_node *node)
{
    int error = 0;
    socklen_t size = sizeof error;

    if (rlock_node_ready(node) == 0)
        return RLOCK_BUSY;
    if (getsockopt(node->conn->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    if (error != 0)
        return rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE, ": %s", strerror(error));
    if (!node->address.is_tls)
        return shake(c, node);
    node->state = RLOCK_TLS;
    return RLOCK_OK;
}

/* A connection that ends before its first byte: over TLS, servers that ask for a client
 * certificate end it so. One that we were connected to before does not ask. */
static int failure_of(struct rlock_client *c, const struct rlock_node *node)
{
    char words[RLOCK_ERROR_MAX];

    if (!node->address.is_tls || node->is_sentinel || c->o.tls_cert != NULL ||
        node->run_id[0] != '\0')
        return RLOCK_E_UNAVAILABLE;
    (void)memcpy(words, c->error, sizeof words);
    return rlock_fail(c, RLOCK_E_TLS,
                      "%.150s (it may want a client certificate: tls_cert)", words);
}

void rlock_node_checked(struct rlock_client *c, struct rlock_node *node)
{
    if (node->check_at_ms == 0 && !node->is_sentinel)
        (void)rlock_leave(
            c, (struct rlock_event){RLOCK_EV_CONNECT, RLOCK_OK, 0, 0, node->began_us});
    node->state = RLOCK_UP;
    node->failure = RLOCK_OK;
    node->pause_ms = 0;
    node->checked_ms = rlock_now_ms();
    node->check_at_ms = node->checked_ms + RLOCK_CHECK_MS;
}

static int read_handshake(struct rlock_client *c, struct rlock_node *node)
{
    int code;

    rlock_talk_step(c, node, rlock_node_ready(node));
    if (node->conn == NULL) /* it failed, or was closed */
        return failure_of(c, node);
    if (node->code != RLOCK_OK)
        return RLOCK_BUSY;
    code = rlock_handshake_read(c, node);
    if (code == RLOCK_OK)
        rlock_node_checked(c, node);
    else if (code == RLOCK_BUSY) /* elsewhere */
        rlock_node_start(c, node, node->until_ms);
    return code;
}

bool rlock_node_is_under_way(const struct rlock_node *node)
{
    return node->state != RLOCK_UP && node->state != RLOCK_DOWN;
}

void rlock_node_advance(struct rlock_client *c, struct rlock_node *node)
{
    enum rlock_state before;
    int code = RLOCK_OK;

    do {
        before = node->state;
        if (before == RLOCK_CONNECTING)
            code = check_socket(c, node);
        else if (before == RLOCK_TLS)
            code = rlock_tls_step(c, node);
        else if (before == RLOCK_SHAKING)
            code = read_handshake(c, node);
        if (before == RLOCK_TLS && code == RLOCK_OK)
            code = shake(c, node);
        if (code < 0)
            rlock_node_fail(c, node, code);
    } while (node->state != before && rlock_node_is_under_way(node));
    if (!rlock_node_is_under_way(node) || rlock_now_ms() < node->until_ms)
        return;
    code = rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE, ": no %s in time",
                         node->state == RLOCK_SHAKING ? "answer" : "connection");
    rlock_node_fail(c, node, code);
}

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

void ll_node_fail(struct ll_client *c, struct ll_node *node, int code)
{
    if (node->check_at_ms == 0 && !node->is_sentinel)
        (void)ll_leave(c, (struct ll_event){LL_EV_CONNECT, code, 0, 0, node->began_us});
    ll_node_close(node);
    node->failure = code;
    (void)memcpy(node->why, c->error, sizeof node->why);
    node->pause_ms =
        ll_least(ll_most(node->pause_ms * 2, PAUSE_FIRST_MS), PAUSE_MOST_MS);
    node->retry_at_ms =
        c->node_ct == 1 ? 0 : ll_now_ms() + ll_jitter_ms(node->pause_ms);
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
    const struct ll_node *node = task->privdata;

    if (elements > ELEMENTS_MAX)
        return NULL;
    return node->hiredis_functions->createArray(task, elements);
}

/* Limits the lengths of arrays, and closes the descriptor on exec. */
static void adopt(struct ll_node *node)
{
    redisReader *reader = node->conn->reader;

    node->hiredis_functions = reader->fn;
    node->functions = *reader->fn;
    node->functions.createArray = make_array;
    reader->fn = &node->functions;
    reader->privdata = node;
    (void)fcntl(node->conn->fd, F_SETFD, FD_CLOEXEC);
}

/* ---- steps: LL_OK, LL_BUSY (not yet), or the fault that ends the try ---- */

/* Reads block for at most a tick; each write is non-blocking by its flag. Connections
 * that go through hiredis never block. */
static int set_waiting(const struct ll_node *node)
{
    static const struct timeval tick = {0, LL_TICK_MS * 1000};
    int fd = node->conn->fd;
    int flags = fcntl(fd, F_GETFL);
    int wanted = node->is_layered ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;

    if (flags < 0 || fcntl(fd, F_SETFL, wanted) != 0)
        return -1;
    return node->is_layered
               ? 0
               : setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof tick);
}

static int shake(struct ll_client *c, struct ll_node *node)
{
    if (set_waiting(node) != 0)
        return ll_fail_at(c, node, LL_E_UNAVAILABLE, ": %s", strerror(errno));
    node->state = LL_SHAKING;
    ll_handshake_put(c, node);
    if (!node->out.is_short)
        return LL_OK;
    node->out.is_short = false;
    return ll_fail_as(c, LL_E_NOMEM);
}

static int begin(struct ll_client *c, struct ll_node *node)
{
    const struct ll_address *a = &node->address;
    bool is_handed_in = c->o.connect != NULL;

    if (is_handed_in)
        node->conn = c->o.connect(c->o.connect_arg);
    else
        node->conn = a->is_unix ? redisConnectUnixNonBlock(a->host)
                                : redisConnectNonBlock(a->host, a->port);
    if (node->conn == NULL && is_handed_in)
        return ll_fail_at(c, node, LL_E_UNAVAILABLE,
                          ": the program has no connection for it");
    if (node->conn == NULL)
        return ll_fail_as(c, LL_E_NOMEM);
    if (node->conn->err != 0)
        return ll_fail_at(c, node, LL_E_UNAVAILABLE, ": %s", node->conn->errstr);
    adopt(node);
    node->state = LL_CONNECTING;
    node->is_layered = a->is_tls;
    if (!is_handed_in)
        return LL_OK;
    node->is_layered = HIREDIS_MAJOR >= 1; /* older versions have no layers */
    node->conn->flags &= ~REDIS_BLOCK;
    return shake(c, node);
}

void ll_node_start(struct ll_client *c, struct ll_node *node, int64_t until_ms)
{
    int code;

    ll_node_close(node);
    node->until_ms = until_ms;
    node->began_us = ll_now_us();
    code = begin(c, node);
    if (code != LL_OK)
        ll_node_fail(c, node, code);
}

static int check_socket(struct ll_client *c, struct ll_node *node)
{
    int error = 0;
    socklen_t size = sizeof error;

    if (ll_node_ready(node) == 0)
        return LL_BUSY;
    if (getsockopt(node->conn->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    if (error != 0)
        return ll_fail_at(c, node, LL_E_UNAVAILABLE, ": %s", strerror(error));
    if (!node->address.is_tls)
        return shake(c, node);
    node->state = LL_TLS;
    return LL_OK;
}

/* A connection that ends before its first byte: over TLS, servers that ask for a client
 * certificate end it so. One that we were connected to before does not ask. */
static int failure_of(struct ll_client *c, const struct ll_node *node)
{
    char words[LL_ERROR_MAX];

    if (!node->address.is_tls || node->is_sentinel || c->o.tls_cert != NULL ||
        node->run_id[0] != '\0')
        return LL_E_UNAVAILABLE;
    (void)memcpy(words, c->error, sizeof words);
    return ll_fail(c, LL_E_TLS, "%.150s (it may want a client certificate: tls_cert)",
                   words);
}

void ll_node_checked(struct ll_client *c, struct ll_node *node)
{
    if (node->check_at_ms == 0 && !node->is_sentinel)
        (void)ll_leave(c,
                       (struct ll_event){LL_EV_CONNECT, LL_OK, 0, 0, node->began_us});
    node->state = LL_UP;
    node->failure = LL_OK;
    node->pause_ms = 0;
    node->checked_ms = ll_now_ms();
    node->check_at_ms = node->checked_ms + LL_CHECK_MS;
}

static int read_handshake(struct ll_client *c, struct ll_node *node)
{
    int code;

    ll_talk_step(c, node, ll_node_ready(node));
    if (node->conn == NULL) /* it failed, or was closed */
        return failure_of(c, node);
    if (node->code != LL_OK)
        return LL_BUSY;
    code = ll_handshake_read(c, node);
    if (code == LL_OK)
        ll_node_checked(c, node);
    else if (code == LL_BUSY) /* elsewhere */
        ll_node_start(c, node, node->until_ms);
    return code;
}

bool ll_node_is_under_way(const struct ll_node *node)
{
    return node->state != LL_UP && node->state != LL_DOWN;
}

void ll_node_advance(struct ll_client *c, struct ll_node *node)
{
    enum ll_state before;
    int code = LL_OK;

    do {
        before = node->state;
        if (before == LL_CONNECTING)
            code = check_socket(c, node);
        else if (before == LL_TLS)
            code = ll_tls_step(c, node);
        else if (before == LL_SHAKING)
            code = read_handshake(c, node);
        if (before == LL_TLS && code == LL_OK)
            code = shake(c, node);
        if (code < 0)
            ll_node_fail(c, node, code);
    } while (node->state != before && ll_node_is_under_way(node));
    if (!ll_node_is_under_way(node) || ll_now_ms() < node->until_ms)
        return;
    code = ll_fail_at(c, node, LL_E_UNAVAILABLE, ": no %s in time",
                      node->state == LL_SHAKING ? "answer" : "connection");
    ll_node_fail(c, node, code);
}

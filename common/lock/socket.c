/* socket: opens the connection to an address: TCP, a Unix socket, or what the program
 * hands in. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/lock/connection.h"

/* Pause before a full Unix socket is tried again. */
enum { FULL_MS = 5 };

static int use(struct rlock_client *c, struct rlock_node *node, int fd)
{
    node->conn = redisConnectFd(fd);
    if (node->conn != NULL)
        return RLOCK_OK;
    (void)close(fd);
    return rlock_fail_as(c, RLOCK_E_NOMEM);
}

/* A Unix socket whose queue is full refuses at once, where TCP waits. */
static int open_unix(struct rlock_client *c, struct rlock_node *node)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = rlock_socket(AF_UNIX);

    (void)memcpy(at.sun_path, node->address.host, strlen(node->address.host));
    if (fd < 0 || connect(fd, (const struct sockaddr *)&at, sizeof at) != 0) {
        int error = errno;

        if (fd >= 0)
            (void)close(fd);
        node->again_ms = rlock_now_ms() + FULL_MS;
        return error == EAGAIN ? RLOCK_BUSY
                               : rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE, ": %s",
                                               strerror(error));
    }
    return use(c, node, fd);
}

/* ---- TCP ---- */

/* Begins to connect: the descriptor, or -1 with errno. */
static int begin_tcp(const struct addrinfo *at)
{
    const int on = 1;
    int fd = rlock_socket(at->ai_family), error;

    if (fd < 0)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, at->ai_addr, at->ai_addrlen) == 0 || errno == EINPROGRESS)
        return fd;
    error = errno;
    (void)close(fd);
    errno = error;
    return -1;
}

/* The addresses of a host are tried one after another, each in its part of the time. */
static int open_tcp(struct rlock_client *c, struct rlock_node *node)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *all, *at;
    int64_t now_ms;
    unsigned i = 0;
    char port[12];
    int fd = -1, code;

    (void)snprintf(port, sizeof port, "%d", node->address.port);
    code = getaddrinfo(node->address.host, port, &hints, &all);
    if (code == EAI_MEMORY)
        return rlock_fail_as(c, RLOCK_E_NOMEM);
    if (code != 0)
        return rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE, ": %s", gai_strerror(code));
    node->place_ct = 0;
    for (at = all; at != NULL; at = at->ai_next)
        node->place_ct++;
    errno = ECONNREFUSED;
    for (at = all; at != NULL && fd < 0; at = at->ai_next) {
        if (i++ < node->place_at)
            continue;
        fd = begin_tcp(at);
        node->place_at = i - 1;
    }
    code = errno;
    freeaddrinfo(all);
    if (fd < 0)
        return rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE, ": %s", strerror(code));
    now_ms = rlock_now_ms();
    node->next_place_ms =
        now_ms + (node->until_ms - now_ms) / (node->place_ct - node->place_at);
    return use(c, node, fd);
}

bool rlock_socket_has_next(const struct rlock_node *node)
{
    return node->state == RLOCK_CONNECTING && node->conn != NULL &&
           node->place_at + 1 < node->place_ct;
}

int rlock_socket_open(struct rlock_client *c, struct rlock_node *node)
{
    bool is_handed_in = c->o.connect != NULL;
    int code = RLOCK_OK;

    node->state = RLOCK_CONNECTING;
    node->is_layered = node->address.is_tls || (is_handed_in && HIREDIS_MAJOR >= 1);
    if (is_handed_in) {
        node->conn = c->o.connect(c->o.connect_arg);
    } else {
        code = node->address.is_unix ? open_unix(c, node) : open_tcp(c, node);
        if (code != RLOCK_OK)
            return code;
    }
    if (node->conn == NULL && is_handed_in)
        return rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE,
                             ": the program has no connection for it");
    if (node->conn == NULL)
        return rlock_fail_as(c, RLOCK_E_NOMEM);
    if (node->conn->err != 0)
        return rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE, ": %s", node->conn->errstr);
    node->conn->flags &= ~REDIS_BLOCK;
    (void)fcntl(node->conn->fd, F_SETFD, FD_CLOEXEC);
    rlock_link_open(&node->link, node->conn->reader);
    return RLOCK_OK;
}

int rlock_socket_check(struct rlock_client *c, struct rlock_node *node)
{
    int error = 0;
    socklen_t size = sizeof error;

    if (getsockopt(node->conn->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    if (error != 0)
        return rlock_fail_at(c, node, RLOCK_E_UNAVAILABLE, ": %s", strerror(error));
    return RLOCK_OK;
}

/* Reads block for at most a tick; each write is non-blocking by its flag. Connections
 * that go through hiredis never block. */
int rlock_socket_wait(const struct rlock_node *node)
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

/* A socket that cannot be watched is tried again at the next step. */
void rlock_socket_watch(struct rlock_node *node, int watch_fd, short events)
{
    if (events == node->watched)
        return;
    if (rlock_watch(watch_fd, node->conn->fd, node->watched, events) || events == 0)
        node->watched = events;
    node->watcher = watch_fd;
}

/* ---- the end of one that is left to the server ---- */

void rlock_socket_leave(struct rlock_client *c, struct rlock_node *node)
{
    if (node->conn == NULL)
        return;
    rlock_drop_left(c);
    rlock_link_close(&node->link);
    rlock_socket_watch(node, node->watcher, 0);
    (void)shutdown(node->conn->fd, SHUT_WR);
    c->left = node->conn;
    node->conn = NULL;
}

void rlock_drop_left(struct rlock_client *c)
{
    if (c->left != NULL)
        redisFree(c->left);
    c->left = NULL;
}
